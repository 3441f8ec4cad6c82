//! Commits records: assigns numbers, publishes files and updates the head. Requires the lock.

pub(crate) mod batch;
pub(crate) mod committer;
pub(crate) mod import_tombstones;
pub(crate) mod room;
pub(crate) mod settings_documents;
pub(crate) mod thread_document;
