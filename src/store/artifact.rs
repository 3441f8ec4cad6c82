//! Artifacts: large data beside the messages.

pub(crate) mod artifact_files;
pub(crate) mod artifact_lines;
pub(crate) mod artifact_writer;
pub(crate) mod contents;
pub(crate) mod lookup;
pub(crate) mod measure;
