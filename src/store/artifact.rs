//! Artifacts: large data beside the messages.

pub(crate) mod artifact_files;
pub(crate) mod contents;
pub(crate) mod find;
pub(crate) mod intake;
pub(crate) mod lines;
pub(crate) mod measure;
