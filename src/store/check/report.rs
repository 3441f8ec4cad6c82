//! The report of a check.

use jiff::Timestamp;

use crate::store::record::finding::Finding;

/// Progress of a check or of packing, in records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Records done.
    pub done: usize,
    /// Records in total, estimated from file names.
    pub total: usize,
}

/// The report of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The number of messages that open.
    pub messages: usize,
    /// The highest number assigned so far.
    pub last_seq: u64,
    /// How many numbers are recorded as forgotten.
    pub forgotten: u64,
    /// The times of the first and the last message.
    pub times: Option<(Timestamp, Timestamp)>,
    /// All findings.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether there are no problems among the findings.
    pub fn is_sound(&self) -> bool {
        !self.findings.iter().any(|finding| finding.kind.is_problem())
    }
}
