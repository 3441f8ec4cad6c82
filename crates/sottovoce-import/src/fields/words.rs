//! Text of contents that come in parts.

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
}

/// Joins the texts of the parts, one per line. Returns how many parts have no text, such as pictures. Speech has its
/// transcript.
pub(crate) fn joined(parts: &[&RawValue]) -> (String, usize) {
    let (mut words, mut others) = (Vec::new(), 0);
    for part in parts {
        match text(part.get()) {
            Some(text) if text.is_empty() => {}
            Some(text) => words.push(text),
            None => others += 1,
        }
    }
    (words.join("\n"), others)
}

fn text(json: &str) -> Option<String> {
    if json.starts_with('"') {
        return serde_json::from_str(json).ok();
    }
    // serde would accept an array for a struct too.
    let part = json.starts_with('{').then(|| serde_json::from_str::<Part>(json).ok());
    part.flatten()?.text
}
