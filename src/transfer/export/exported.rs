//! The result of an export, and the error of its destination.

use std::io;

use serde::Serialize;

use crate::error::Error;
use crate::store::Finding;

/// The result of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Exported {
    /// The number of conversations.
    pub conversations: usize,
    /// The number of messages.
    pub messages: u64,
    /// The number of artifacts with their contents.
    pub artifacts: usize,
    /// The number of snapshots.
    pub snapshots: usize,
    /// The number of messages that the format has no place for.
    pub left_out: u64,
    /// Records that could not be read. They are not in the export.
    pub skipped: Vec<Finding>,
}

/// An error of the destination.
pub(crate) fn unwritten(error: io::Error) -> Error {
    Error::io("write the export", "the export", error)
}
