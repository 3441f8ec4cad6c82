//! JSON of other systems.

use serde::Deserialize;
use serde_json::error::Category;
use sottovoce::import::RefusalReason::{self, Corrupt};

/// The text of a file, without a byte order mark.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, RefusalReason> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = str::from_utf8(bytes).map_err(|_| Corrupt("it is not text"))?;
    if text.trim_ascii().is_empty() { Err(Corrupt("it is empty")) } else { Ok(text) }
}

/// Parses a JSON object; serde would accept an array for a struct too. `other` is the reason for valid JSON of another
/// shape.
pub(crate) fn object<'a, T: Deserialize<'a>>(
    json: &'a str,
    other: &'static str,
) -> Result<T, RefusalReason> {
    if !json.trim_ascii_start().starts_with('{') {
        return Err(Corrupt("it is not a JSON object"));
    }
    parse(json, other)
}

/// Parses JSON. `other` is the reason for valid JSON of another shape.
pub(crate) fn parse<'a, T: Deserialize<'a>>(
    json: &'a str,
    other: &'static str,
) -> Result<T, RefusalReason> {
    serde_json::from_str(json).map_err(|error| {
        Corrupt(match error.classify() {
            Category::Eof => "it is cut off",
            Category::Data => other,
            Category::Syntax | Category::Io => "it is not JSON",
        })
    })
}

/// Reads content: a text as it is, anything else as compact JSON.
pub(crate) fn content(json: &str) -> Result<String, RefusalReason> {
    if json.starts_with('"') {
        return serde_json::from_str(json).map_err(|_| Corrupt("its content is not a text"));
    }
    Ok(compact(json))
}

/// JSON without white space between its tokens.
pub(crate) fn compact(json: &str) -> String {
    let (mut inside, mut escaped) = (false, false);
    let keep = |c: &char| {
        let is_part = inside || !c.is_ascii_whitespace();
        inside ^= *c == '"' && !escaped;
        escaped = inside && *c == '\\' && !escaped;
        is_part
    };
    json.chars().filter(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn compact_json_means_the_same(text in "[ \\\\\"a-c]{0,12}", number in any::<i32>()) {
            let value = serde_json::json!({ "a b": [text, number, null], "c": {} });
            let laid_out = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(compact(&laid_out), value.to_string());
        }
    }
}
