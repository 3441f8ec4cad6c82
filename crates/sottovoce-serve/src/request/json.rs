//! JSON that is read in place: fields by name, and where their texts stand.

use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of an object, unparsed and in their order. Of fields with the same name the last counts, as it does for most
/// servers.
#[derive(Debug)]
pub(crate) struct Object<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Object(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

impl<'a> Object<'a> {
    pub(crate) fn parse(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// [`parse`](Self::parse) for an object whose fields with one of the `known` names are written exactly so, and once.
    /// Servers differ in what they make of any other: some ignore case, and some take the first of two.
    ///
    /// # Errors
    /// What is wrong, in words for a client.
    pub(super) fn strict(json: &'a str, known: &[&str]) -> Result<Self, String> {
        let object = Self::parse(json).ok_or("the request is not JSON of the expected form")?;
        let mut seen = Vec::new();
        for (written, _) in &object.0 {
            // As Go compares names. It takes a long s and the sign of kelvin for letters, too.
            let folded = written.to_uppercase().to_lowercase();
            let Some(name) = known.iter().find(|name| **name == folded) else { continue };
            if written != name || seen.contains(name) {
                return Err(format!("the field `{name}` must be written exactly so, and once"));
            }
            seen.push(*name);
        }
        Ok(object)
    }

    /// The field's JSON, unless it is missing or null.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a str> {
        let found = self.0.iter().rfind(|(known, _)| known == name);
        found.map(|(_, raw)| raw.get()).filter(|raw| *raw != "null")
    }

    /// The text of a field, if it is there.
    ///
    /// # Errors
    /// The field is no text.
    pub(super) fn only_text(&self, name: &str) -> Result<Option<String>, String> {
        let wrong = || format!("the field `{name}` must be a text");
        self.raw(name).map(|raw| text(raw).ok_or_else(wrong)).transpose()
    }

    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        self.raw(name).and_then(Self::parse)
    }

    pub(crate) fn array(&self, name: &str) -> Option<Vec<&'a RawValue>> {
        self.raw(name).and_then(|raw| serde_json::from_str(raw).ok())
    }

    /// How many items a list has.
    pub(super) fn count(&self, name: &str) -> usize {
        self.array(name).map_or(0, |items| items.len())
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.raw(name).and_then(text)
    }

    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.raw(name).and_then(|raw| serde_json::from_str(raw).ok())
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.raw(name) == Some("true")
    }
}

/// The text of a JSON string.
pub(super) fn text(raw: &str) -> Option<String> {
    raw.starts_with('"').then(|| serde_json::from_str(raw).ok()).flatten()
}

/// Where a part of the body stands in it.
pub(super) fn place(body: &str, part: &str) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(body.as_ptr() as usize)?;
    let end = start.checked_add(part.len())?;
    (end <= body.len()).then_some(start..end)
}

/// A text as it stands between the quotes of a JSON string.
pub(crate) fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

/// Where the last `tail` bytes of a string's text begin in its JSON `raw`, which has its quotes.
pub(crate) fn tail_start(raw: &str, tail: usize) -> Option<usize> {
    let inner = raw.get(1..raw.len().checked_sub(1)?)?;
    let whole = text(raw)?.len();
    let wanted = whole.checked_sub(tail)?;
    let (mut at, mut decoded) = (0, 0);
    while decoded < wanted {
        let rest = inner.get(at..)?;
        let written = match rest.as_bytes() {
            // A character above U+FFFF is two escapes.
            [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', ..] => 12,
            [b'\\', b'u', ..] => 6,
            [b'\\', ..] => 2,
            _ => rest.chars().next()?.len_utf8(),
        };
        decoded += text(&format!("\"{}\"", rest.get(..written)?))?.len();
        at += written;
    }
    (decoded == wanted).then_some(at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_a_text_is_found_behind_escapes() {
        for (raw, tail, rest) in [
            (r#""ab\ncd""#, 2, r#"cd""#),
            (r#""\u00e9\ud83d\ude00 Time is 9.""#, 10, r#"Time is 9.""#),
            (r#""é😀\\\"x""#, 1, r#"x""#),
            (r#""x\n\u0041""#, 2, r#"\n\u0041""#),
            (r#""x""#, 0, "\""),
        ] {
            assert_eq!(raw.get(tail_start(raw, tail).unwrap()..), Some(rest), "{raw}");
        }
        assert_eq!(tail_start(r#""x""#, 5), None);
        // No text ends within a character.
        assert_eq!(tail_start(r#""é""#, 1), None);
    }

    #[test]
    fn a_known_field_in_another_case_or_twice_is_refused() {
        for json in [
            r#"{"Model":"m"}"#,
            r#"{"model":"m","MODEL":"x"}"#,
            r#"{"model":"m","model":"x"}"#,
            r#"{"m\u006fdel":"m","model":"x"}"#,
            r#"{"to\u212aen":1}"#,
            r#"{"ſtop":1}"#,
            r#"{"model":"m"} x"#,
            r#"{"model":"m"}{}"#,
            "[]",
        ] {
            assert!(Object::strict(json, &["model", "token", "stop"]).is_err(), "{json}");
        }
        let json = r#"{"model":"m","Other":1,"other":1,"other":2,"models":3}"#;
        assert_eq!(Object::strict(json, &["model"]).unwrap().text("model").as_deref(), Some("m"));
    }

    #[test]
    fn what_is_escaped_comes_back() {
        for words in ["", "a \"b\" \\ \n \u{1} é 😀"] {
            assert_eq!(text(&format!("\"{}\"", escaped(words))).as_deref(), Some(words));
        }
    }
}
