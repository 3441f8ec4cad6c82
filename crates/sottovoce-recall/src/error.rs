//! Why a segment's bytes were not read.

use std::fmt;

/// Why the bytes of a segment were not read. In every case the caller builds the segment again from its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SegmentError {
    /// An older version of the ranker wrote the bytes, or one with other stop words or another encoder.
    Older,
    /// A newer version of the ranker wrote the bytes.
    Newer,
    /// The bytes are no segment, or a damaged one.
    Damaged,
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Older => "an older version wrote this index segment",
            Self::Newer => "a newer version wrote this index segment",
            Self::Damaged => "this index segment is damaged",
        })
    }
}

impl std::error::Error for SegmentError {}
