//! What the JSON of other systems has in common.

use serde::Deserialize;
use serde_json::error::Category;

use crate::import::RefusalReason::{self, Corrupt};

/// The text of a file, without the mark that some programs begin it with.
pub(super) fn text(bytes: &[u8]) -> Result<&str, RefusalReason> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = str::from_utf8(bytes).map_err(|_| Corrupt("it is not text"))?;
    if text.trim_ascii().is_empty() { Err(Corrupt("it is empty")) } else { Ok(text) }
}

/// Parses a JSON object; serde would also take an array for a struct. `other` says what it is whose fields are others.
pub(super) fn object<'a, T: Deserialize<'a>>(
    json: &'a str,
    other: &'static str,
) -> Result<T, RefusalReason> {
    if !json.trim_ascii_start().starts_with('{') {
        return Err(Corrupt("it is not a JSON object"));
    }
    serde_json::from_str(json).map_err(|error| {
        Corrupt(match error.classify() {
            Category::Eof => "it ends in the middle",
            Category::Data => other,
            Category::Syntax | Category::Io => "it is not JSON",
        })
    })
}
