//! From text to words and passages.

pub(crate) mod fold;
pub(crate) mod language;
pub(crate) mod passages;
pub(crate) mod stop_words;
#[cfg(test)]
mod tests;
pub(crate) mod words;

/// The beginning of a text: at most so many bytes, whole characters.
pub(crate) fn beginning(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}
