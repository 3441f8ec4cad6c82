//! Metadata of another system, converted to texts.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use sottovoce::import::metadata::{ARTIFACT, ASIDE, CAME_FROM, IMPORTED_FROM, RESTORED_FROM};

use crate::fields::json;

/// The metadata with the id that the system gives a message.
pub(crate) const MESSAGE_ID: &str = "messageId";

/// Names of metadata that a store interprets itself.
const TAKEN: [&str; 5] = [ARTIFACT, ASIDE, CAME_FROM, IMPORTED_FROM, RESTORED_FROM];

/// Metadata as it is in the system's JSON.
pub(crate) type Raw<'a> = BTreeMap<String, &'a RawValue>;

/// Converts metadata to texts: a text stays as it is, null is dropped, anything else becomes compact JSON. A name that
/// the store interprets gets the system's name before it.
pub(crate) fn of(system: &str, raw: Raw<'_>) -> BTreeMap<String, String> {
    let text = |(name, value): (String, &RawValue)| {
        let is_taken = TAKEN.contains(&name.as_str());
        let name = if is_taken { format!("{system}:{name}") } else { name };
        Some((name, text(value.get())?))
    };
    raw.into_iter().filter_map(text).collect()
}

/// Converts one value.
pub(crate) fn text(json: &str) -> Option<String> {
    match json {
        "null" => None,
        json => Some(serde_json::from_str(json).unwrap_or_else(|_| json::compact(json))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_a_text_and_takes_no_name_that_the_store_goes_by() {
        let json = r#"{"a": "x \u00e9", "b": [1, {"c": null}], "c": null, "d": 1.50, "artifact": "y",
            "cameFrom": "spoken", "restoredFrom": "z:1", "speaker": "Anna"}"#;
        let raw: Raw<'_> = serde_json::from_str(json).unwrap();
        let notes = of("mimir", raw);
        let notes: Vec<_> = notes.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            notes,
            [
                ("a", "x é"),
                ("b", r#"[1,{"c":null}]"#),
                ("d", "1.50"),
                ("mimir:artifact", "y"),
                ("mimir:cameFrom", "spoken"),
                ("mimir:restoredFrom", "z:1"),
                ("speaker", "Anna"),
            ]
        );
    }
}
