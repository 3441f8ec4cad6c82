//! Writing records under the conversation's lock.

pub(crate) mod batch;
pub(crate) mod committer;
pub(crate) mod import_tombstones;
pub(crate) mod presets;
