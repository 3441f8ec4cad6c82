//! From text to words, passages and cues.

pub(crate) mod cues;
pub(crate) mod language;
pub(crate) mod lists;
pub(crate) mod passages;
pub(crate) mod phrases;
#[cfg(test)]
mod tests;
pub(crate) mod words;
