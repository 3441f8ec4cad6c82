//! The parameters of a request after the question mark

use std::time::Duration;

use crate::api::{Id, MAX_RECORDS, MAX_WAIT};
use crate::error::{Error, Result};

/// The known parameters. Others are ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) after: i64,
    pub(super) limit: i64,
    pub(super) wait: Duration,
    pub(super) seen: Option<Id>,
}

impl Query {
    pub(super) fn parse(text: Option<&str>) -> Result<Self> {
        let mut query = Self { limit: MAX_RECORDS as i64, ..Self::default() };
        for pair in text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "after" => query.after = number(name, value, 0, i64::MAX)?,
                "limit" => query.limit = number(name, value, 1, MAX_RECORDS as i64)?,
                "wait" => {
                    let seconds = number(name, value, 0, MAX_WAIT as i64)?;
                    query.wait = Duration::from_secs(seconds.unsigned_abs());
                }
                "seen" => {
                    query.seen = Some(value.parse().map_err(|_| wrong(name, "an identifier"))?);
                }
                _ => {}
            }
        }
        Ok(query)
    }
}

fn number(name: &str, value: &str, least: i64, most: i64) -> Result<i64> {
    let is_digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.parse().ok().filter(|number| is_digits && (least..=most).contains(number));
    number.ok_or_else(|| wrong(name, &format!("a number from {least} to {most}")))
}

fn wrong(name: &str, must: &str) -> Error {
    Error::Invalid { what: format!("the parameter `{name}` must be {must}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_the_range_and_other_signs_are_refused() {
        for text in [
            "after=-1",
            "after=+1",
            "after=9223372036854775808",
            "limit=0",
            "limit=1001",
            "wait=56",
            "after=",
            "after",
            "seen=1",
        ] {
            assert!(Query::parse(Some(text)).is_err(), "{text}");
        }
        let query = Query::parse(Some("after=9223372036854775807&limit=5&x=y&wait=55")).unwrap();
        assert_eq!((query.after, query.limit, query.wait.as_secs()), (i64::MAX, 5, 55));
    }
}
