//! The metadata of a conversation: `{"title","createdAt","tokens","cost","tags","metadata"}`. Mimir's message counts
//! are often wrong, and are ignored.

use serde::Deserialize;
use sottovoce::import::ImportedFacts;
use sottovoce::import::RefusalReason::{self, Corrupt};
use sottovoce::store::Cost;

use crate::fields::notes::{self, Raw};
use crate::fields::{json, time};
use crate::system::MIMIR;

#[derive(Deserialize)]
struct Fields<'a> {
    title: Option<String>,
    #[serde(rename = "createdAt")]
    created_at: Option<String>,
    tokens: Option<f64>,
    cost: Option<f64>,
    tags: Option<Vec<String>>,
    #[serde(borrow)]
    metadata: Option<Raw<'a>>,
}

pub(super) fn read(bytes: &[u8], file: String) -> Result<ImportedFacts, RefusalReason> {
    let fields: Fields<'_> =
        json::object(json::text(bytes)?, "its fields are not those of a conversation")?;
    let created_at = fields.created_at.as_deref().map(|text| {
        time::parse(text).map(|(at, _)| at).ok_or(Corrupt("its createdAt is not a time"))
    });
    let mut facts = ImportedFacts::default();
    facts.title = fields.title.filter(|title| !title.is_empty());
    facts.tags = fields.tags.unwrap_or_default().into_iter().collect();
    facts.metadata = notes::of(MIMIR, fields.metadata.unwrap_or_default());
    facts.created_at = created_at.transpose()?;
    let micros = fields.cost.unwrap_or_default() * 1e6;
    facts.spent = Cost::new(whole(fields.tokens.unwrap_or_default()), whole(micros));
    facts.file = file;
    Ok(facts)
}

/// Rounds a number; a negative one becomes 0.
fn whole(number: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "casts keep to the ends of the range"
    )]
    let whole = number.round() as u64;
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes, String::new());
        }
    }

    #[test]
    fn costs_are_millionths_and_never_less_than_nothing() {
        let spent = |text: &str| read(text.as_bytes(), String::new()).unwrap().spent;
        assert_eq!(spent(r#"{"tokens":812,"cost":0.0031}"#), Cost::new(812, 3100));
        assert_eq!(spent(r#"{"tokens":-1,"cost":-0.5}"#), Cost::default());
        assert_eq!(spent(r#"{"tokens":1e300,"cost":null}"#), Cost::new(u64::MAX, 0));
        assert!(read(br#"{"createdAt":"yesterday"}"#, String::new()).is_err());
    }
}
