//! Snapshots: saved windows of a conversation.

pub(crate) mod restore;
pub(crate) mod snapshot_files;
