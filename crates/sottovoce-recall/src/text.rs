//! From text to words, passages and cues.

pub(crate) mod cues;
pub(crate) mod language;
pub(crate) mod lists;
pub(crate) mod passages;
pub(crate) mod phrases;
pub(crate) mod words;
