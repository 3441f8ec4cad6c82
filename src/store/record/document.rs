//! The kinds of sealed documents beside the messages.

use std::fmt;
use std::ops::RangeInclusive;

use crate::crypto::{AssociatedData, Kind};
use crate::store::record::layout::{RECALL, SNAPSHOTS};

/// A sealed document of a conversation. Each conversation has at most one of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Document {
    /// The token calibration: what a model's token counts have taught about the length of texts.
    Calibration,
    /// The digests of messages that may not come back: those that were forgotten, and imported ones that limits removed.
    Imports,
    /// The store's presets. They belong to the default conversation and are read and changed with its settings.
    Presets,
    /// The conversation's settings. [`Profile`](crate::store::Profile) reads and changes them.
    Profile,
    /// What the device keeps of its sync with others, in the default conversation.
    /// [`read_state`](crate::exchange::read_state) reads it. No export has it.
    Sync,
    /// What it keeps of the teams that it shares conversations with, likewise.
    Teams,
    /// The newest messages of each thread, by name. It is derived from the messages, and the store keeps it by itself.
    Threads,
    /// What was deleted and may not come back. It belongs to the settings and is read and changed with them.
    Tombstones,
}

impl Document {
    pub(crate) const ALL: [Self; 8] = [
        Self::Calibration,
        Self::Imports,
        Self::Presets,
        Self::Profile,
        Self::Sync,
        Self::Teams,
        Self::Threads,
        Self::Tombstones,
    ];

    /// The document's file name in the conversation's folder.
    pub(crate) fn file_name(self) -> &'static str {
        self.kind().as_str()
    }

    /// Whether its plaintext may be longer than an envelope can be. It is then sealed as a stream, as artifacts are.
    pub(crate) fn may_be_long(self) -> bool {
        !matches!(self, Self::Calibration | Self::Presets)
    }

    pub(crate) fn is_name(name: &[u8]) -> bool {
        Self::ALL.iter().any(|document| document.file_name().as_bytes() == name)
    }

    pub(crate) fn associated<'a>(self, scope: &'a [&'a str]) -> AssociatedData<'a> {
        AssociatedData::of(self.kind(), scope, self.file_name())
    }

    fn kind(self) -> Kind {
        match self {
            Self::Calibration => Kind::Calibration,
            Self::Imports => Kind::Imports,
            Self::Presets => Kind::Presets,
            Self::Profile => Kind::Profile,
            Self::Sync => Kind::Sync,
            Self::Teams => Kind::Teams,
            Self::Threads => Kind::Threads,
            Self::Tombstones => Kind::Tombstones,
        }
    }
}

/// Names one document of a conversation: one of the fixed ones, a snapshot, or a segment of the search index. `Display`
/// gives a name that is unique within the conversation and never changes, such as `profile` or `snapshots/6f1c…`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DocumentId {
    /// A document of which there is at most one.
    Named(Document),
    /// The snapshot with that id, a UUID.
    Snapshot(String),
    /// The segment of the search index over the messages of this block of numbers: block `k` has the numbers from
    /// `k * 1024 + 1` to `(k + 1) * 1024`. It is derived from them and the artifacts that they refer to, and deleted as soon as one of these is.
    Segment(u64),
}

/// How many numbers a segment of the search index covers.
pub(crate) const BLOCK: u64 = 1024;

/// The block of numbers with this number.
pub(crate) fn block_of(seq: u64) -> u64 {
    seq.saturating_sub(1) / BLOCK
}

/// The numbers of a block.
pub(crate) fn block_seqs(block: u64) -> RangeInclusive<u64> {
    let before = block.saturating_mul(BLOCK);
    before.saturating_add(1)..=before.saturating_add(BLOCK)
}

impl From<Document> for DocumentId {
    fn from(document: Document) -> Self {
        Self::Named(document)
    }
}

impl fmt::Display for DocumentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(document) => f.write_str(document.file_name()),
            Self::Snapshot(id) => write!(f, "{SNAPSHOTS}/{id}"),
            Self::Segment(block) => write!(f, "{RECALL}/{block}"),
        }
    }
}
