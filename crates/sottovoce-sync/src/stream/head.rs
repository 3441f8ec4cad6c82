//! The head of a stream: which segments it has. It is the only object of a stream that changes.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::id::Id;

/// The version of heads and segments that this program writes.
pub(crate) const VERSION: u64 = 1;

/// A publish: its number and its random token. Two publishes with one number differ in the token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Point(pub(crate) u64, pub(crate) Id);

impl Point {
    /// Before the first publish.
    pub(crate) const START: Self = Self(0, Id::ZERO);
}

/// A segment, as the head lists it: its object, its first and last publish, and its size when sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SegmentRef(pub(crate) Id, pub(crate) u64, pub(crate) u64, pub(crate) u64);

impl SegmentRef {
    pub(crate) fn object(&self) -> Id {
        self.0
    }

    pub(crate) fn first(&self) -> u64 {
        self.1
    }

    pub(crate) fn last(&self) -> u64 {
        self.2
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.3
    }
}

/// A number of messages, and the sum of 64 bits of the identity of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digest(pub(crate) u64, pub(crate) u64);

/// A head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    pub(crate) v: u64,
    /// The number of this head, and its token.
    pub(crate) n: u64,
    pub(crate) token: Id,
    /// The device's name.
    pub(crate) name: String,
    /// When it was written, by the device's clock.
    pub(crate) at: Timestamp,
    /// The last publish.
    pub(crate) last: Point,
    pub(crate) segments: Vec<SegmentRef>,
    /// The last publish of each other device that this one has applied.
    pub(crate) seen: BTreeMap<Id, u64>,
    /// Streams that this one takes the place of. What they had is in this one or in others.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) replaces: BTreeSet<Id>,
    /// The number of messages of each conversation that this device shares, and the sum of the first halves of their
    /// identities.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) has: BTreeMap<String, Digest>,
    /// Whether this device closed the space: nobody may publish into it any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) closed: bool,
}

#[derive(Deserialize)]
struct Versioned {
    v: u64,
}

impl Head {
    /// The text, padded with spaces to a power of two, so that its length does not tell the number of segments.
    pub(crate) fn to_text(&self) -> serde_json::Result<Zeroizing<Vec<u8>>> {
        let mut text = Zeroizing::new(serde_json::to_vec(self)?);
        let length = text.len().next_power_of_two().max(1024);
        text.resize(length, b' ');
        Ok(text)
    }

    /// Parses a text. The error says what is wrong with it.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, &'static str> {
        let head: Self = serde_json::from_slice(text).map_err(|_| unreadable(text))?;
        let mut before = 0;
        for segment in &head.segments {
            if segment.first() != before + 1 || segment.last() < segment.first() {
                return Err("its segments do not follow each other");
            }
            before = segment.last();
        }
        if head.v != VERSION {
            return Err(unreadable(text));
        }
        if before != head.last.0 {
            return Err("its segments do not end with its last publish");
        }
        Ok(head)
    }
}

/// What is wrong with a text that cannot be read.
pub(crate) fn unreadable(text: &[u8]) -> &'static str {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match serde_json::from_slice::<Versioned>(line) {
        Ok(Versioned { v }) if v > VERSION => "a newer version of this program wrote it",
        _ => "it has another form",
    }
}
