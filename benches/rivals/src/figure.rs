//! The measured figures.

use crate::contender::{Kind, Outcome};
use crate::stats::Summary;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Figure {
    Unchanged,
    OwnAppend,
    OtherAppend,
    Open,
    OpenAlone,
    Memory,
    Resident,
    Append,
    Bulk,
    Singly,
    Scan,
    ScanTwo,
    Disk,
    Day,
    OtherDay,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    /// Seconds a message, shown as messages a second.
    SecondsEach,
    Bytes,
}

/// The contender of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    Store(Kind),
    /// No store: the cost of the guarantee itself on this disk.
    Floor,
}

/// One figure of one contender at one size; less is better.
#[derive(Clone, Copy)]
pub(crate) struct Cell {
    pub(crate) figure: Figure,
    pub(crate) messages: usize,
    pub(crate) who: Who,
    pub(crate) summary: Summary,
    /// Whether the medians of the first and last half of the rounds agreed.
    pub(crate) settled: bool,
}

impl Who {
    pub(crate) const ALL: [Self; 7] = [
        Self::Store(Kind::Ours),
        Self::Floor,
        Self::Store(Kind::SqlCipher),
        Self::Store(Kind::Redb),
        Self::Store(Kind::Document),
        Self::Store(Kind::JsonLines),
        Self::Store(Kind::JsonFile),
    ];

    pub(crate) fn store(self) -> Outcome<Kind> {
        match self {
            Self::Store(kind) => Ok(kind),
            Self::Floor => Err("the floor is no store".into()),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Store(kind) => kind.name(),
            Self::Floor => "the disk's floor",
        }
    }
}

impl Figure {
    pub(crate) const ALL: [Self; 15] = [
        Self::Unchanged,
        Self::OwnAppend,
        Self::OtherAppend,
        Self::Open,
        Self::OpenAlone,
        Self::Memory,
        Self::Resident,
        Self::Append,
        Self::Bulk,
        Self::Singly,
        Self::Scan,
        Self::ScanTwo,
        Self::Disk,
        Self::Day,
        Self::OtherDay,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "tail of 6, nothing changed",
            Self::OwnAppend => "tail of 6 after own append",
            Self::OtherAppend => "tail of 6 after another process's",
            Self::Open => "open and first tail of 6",
            Self::OpenAlone => "the same, opened by nobody else",
            Self::Memory => "memory added by that",
            Self::Resident => "the same, program pages included",
            Self::Append => "append",
            Self::Bulk => "bulk append, all at once",
            Self::Singly => "bulk append, one at a time",
            Self::Scan => "scan of everything",
            Self::ScanTwo => "scan, two threads",
            Self::Disk => "on disk, each message",
            Self::Day => "one day",
            Self::OtherDay => "another day each time",
        }
    }

    /// The name for `--figure`. Figures measured together share one name.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::OwnAppend => "own-append",
            Self::OtherAppend => "other-append",
            Self::Open | Self::OpenAlone => "open",
            Self::Memory | Self::Resident => "memory",
            Self::Append => "append",
            Self::Bulk | Self::Singly => "bulk",
            Self::Scan | Self::ScanTwo => "scan",
            Self::Disk => "disk",
            Self::Day | Self::OtherDay => "day",
        }
    }

    pub(crate) fn unit(self) -> Unit {
        match self {
            Self::Memory | Self::Resident | Self::Disk => Unit::Bytes,
            Self::Bulk | Self::Singly => Unit::SecondsEach,
            _ => Unit::Seconds,
        }
    }
}
