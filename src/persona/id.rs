//! New ids, made from the time and random bits.

use jiff::Timestamp;

use crate::error::{Error, Result};

const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// A new id such as `context-mep92q9v-mkorf9`: the milliseconds since 1970 and about 31 random bits, both in base 36.
pub(super) fn fresh(what: &str, now: Timestamp) -> Result<String> {
    const CHANCES: u64 = 36_u64.pow(6);
    let chance = getrandom::u64().map_err(|_| Error::NoRandomness)? % CHANCES;
    let time = u64::try_from(now.as_millisecond()).unwrap_or(0);
    Ok(format!("{what}-{}-{}", base36(time, 8), base36(chance, 6)))
}

fn base36(mut number: u64, digits: usize) -> String {
    let mut text = Vec::new();
    while number > 0 || text.len() < digits {
        let digit = usize::try_from(number % 36).unwrap_or(0);
        text.push(DIGITS.get(digit).copied().unwrap_or(b'0'));
        number /= 36;
    }
    text.iter().rev().map(|digit| char::from(*digit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_made_of_the_time_and_of_chance() {
        let now = "2025-08-24T05:31:01.123Z".parse().unwrap();
        let (one, other) = (fresh("context", now).unwrap(), fresh("context", now).unwrap());
        // Another system wrote this prefix at the same time.
        assert!(one.starts_with("context-mep92q9v-") && one.len() == 23, "{one}");
        assert_ne!(one, other);
    }
}
