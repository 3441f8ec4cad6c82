//! What an export came to, and the error for a destination that cannot be written.

use std::io;

use serde::Serialize;

use crate::error::Error;
use crate::store::Finding;

/// What an export came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Exported {
    /// How many conversations were exported.
    pub conversations: usize,
    /// How many messages.
    pub messages: u64,
    /// How many artifacts with their contents.
    pub artifacts: usize,
    /// How many snapshots.
    pub snapshots: usize,
    /// How many messages the form has no place for.
    pub left_out: u64,
    /// What could not be read, and is not in the export.
    pub skipped: Vec<Finding>,
}

/// An error of the destination.
pub(crate) fn unwritten(error: io::Error) -> Error {
    Error::io("write the export", "the export", error)
}
