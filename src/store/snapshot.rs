//! Snapshots: saved windows of a conversation.

pub(crate) mod restore_job;
pub(crate) mod snapshot_files;
