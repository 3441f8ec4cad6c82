//! What a check found.

use jiff::Timestamp;

use crate::store::record::finding::Finding;

/// How far a check, or packing, has come, in records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Records done with.
    pub done: usize,
    /// Records to do, as far as names tell.
    pub total: usize,
}

/// What a check found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Messages that open.
    pub messages: usize,
    /// The highest number given so far.
    pub last_seq: u64,
    /// How many numbers are recorded as forgotten.
    pub forgotten: u64,
    /// The first and last message's place in time.
    pub times: Option<(Timestamp, Timestamp)>,
    /// Everything that is not as it should be.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether nothing was lost, changed or unreadable.
    pub fn is_sound(&self) -> bool {
        !self.findings.iter().any(|finding| finding.kind.is_problem())
    }
}
