//! What another system notes of a message, a conversation or an artifact, as it is kept here: texts by name.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use sottovoce::import::metadata::{ARTIFACT, IMPORTED_FROM, RESTORED_FROM};

use crate::fields::json;

/// The name of the note that says what the system itself calls a message.
pub(crate) const MESSAGE_ID: &str = "messageId";

/// Names by which a store finds its own messages and artifacts.
const TAKEN: [&str; 3] = [ARTIFACT, IMPORTED_FROM, RESTORED_FROM];

/// A system's notes, as they stand in its JSON.
pub(crate) type Raw<'a> = BTreeMap<String, &'a RawValue>;

/// The notes as texts: a text as it is, anything else as compact JSON, but for null, which is none. One whose name means
/// something of its own here has the system's before it.
pub(crate) fn of(system: &str, raw: Raw<'_>) -> BTreeMap<String, String> {
    let text = |(name, value): (String, &RawValue)| {
        let is_taken = TAKEN.contains(&name.as_str());
        let name = if is_taken { format!("{system}:{name}") } else { name };
        Some((name, text(value.get())?))
    };
    raw.into_iter().filter_map(text).collect()
}

/// One note as a text.
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
            "restoredFrom": "z:1", "speaker": "Anna"}"#;
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
                ("mimir:restoredFrom", "z:1"),
                ("speaker", "Anna"),
            ]
        );
    }
}
