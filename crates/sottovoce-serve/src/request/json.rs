//! JSON that is read in place: fields by name, and where their texts stand.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::value::RawValue;

/// The fields of an object, unparsed. Of fields with the same name the last counts, as it does for most servers.
#[derive(Debug)]
pub(crate) struct Object<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Object<'a> {
    pub(crate) fn parse(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok().map(Self)
    }

    /// The field's JSON, unless it is missing or null.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).map(|raw| raw.get()).filter(|raw| *raw != "null")
    }

    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        self.raw(name).and_then(Self::parse)
    }

    pub(crate) fn array(&self, name: &str) -> Option<Vec<&'a RawValue>> {
        self.raw(name).and_then(|raw| serde_json::from_str(raw).ok())
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
    fn what_is_escaped_comes_back() {
        for words in ["", "a \"b\" \\ \n \u{1} é 😀"] {
            assert_eq!(text(&format!("\"{}\"", escaped(words))).as_deref(), Some(words));
        }
    }
}
