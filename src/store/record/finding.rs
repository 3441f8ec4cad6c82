//! Findings of checks, and the report of a check.

use std::ops::RangeInclusive;
use std::{fmt, io};

use jiff::Timestamp;
use serde::Serialize;
use serde::ser::SerializeStruct;

use crate::error::Error;
use crate::store::record::layout::PACKS;
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;

/// One problem or note about a store, and where it was found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Finding {
    /// The kind of finding.
    pub kind: FindingKind,
    /// The file's name in the conversation's folder. Unprintable characters are escaped.
    pub file: Option<String>,
    /// The first and last number concerned. For a file they come from its name.
    pub seqs: Option<(u64, u64)>,
}

impl Finding {
    /// Adds those of `more` that are not in `findings` yet.
    pub fn add_new(findings: &mut Vec<Self>, more: impl IntoIterator<Item = Self>) {
        for finding in more {
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }
}

/// Kinds of findings. `Display` explains each in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum FindingKind {
    /// Sealed under a key that the caller did not provide.
    #[error("sealed under key {found}, which was not given, so it cannot be read")]
    WrongKey {
        /// The key's id.
        found: String,
    },
    /// Sealed under a key that the vault names but that is not bound to this store; or that key itself.
    #[error(
        "the vault names key {found}, but the writing key's seal does not cover it: it may be another store's key"
    )]
    UnboundKey {
        /// The key's id.
        found: String,
    },
    /// Well formed, but its seal does not verify: it was changed, renamed, or copied from another conversation.
    #[error(
        "its seal does not verify: it was changed, renamed, or copied from another conversation; it is never read"
    )]
    Unopenable,
    /// Not a valid envelope.
    #[error("damaged, perhaps by the disk or by someone: {0}; damaged parts are never read")]
    Damaged(&'static str),
    /// The seal verifies, but the contents are no record.
    #[error("its seal verifies, but its contents are no record that this version knows")]
    BadRecord,
    /// Two files that both open have the same number.
    #[error(
        "another readable record has the same number, as after mixing two copies of a folder; both are read"
    )]
    DuplicateNumber,
    /// A pack holds records that are stored elsewhere as well. An interrupted writer leaves this behind. Each record
    /// counts once.
    #[error(
        "it has records that are stored elsewhere as well, left by an interruption; each counts once"
    )]
    RedundantCopy,
    /// A file that is not part of this store.
    #[error("not a file of this store; it is never read as a message")]
    Foreign,
    /// A record in the format of the system that this format replaced.
    #[error(
        "a record in the format of the older system, which does not authenticate its place; it is never read as a message"
    )]
    LegacyFormat,
    /// Written by a newer version of the format.
    #[error("written in format version {0}; only a newer program can read it")]
    NewerFormat(u64),
    /// A link, folder, pipe or device instead of a file, or a file too large to be a record.
    #[error("{0} instead of a record; it is not followed")]
    NotPlain(&'static str),
    /// The operating system could not read it.
    #[error("the operating system could not read it ({0})")]
    Unreadable(io::ErrorKind),
    /// Numbers that are neither stored nor recorded as forgotten.
    #[error("neither stored nor recorded as forgotten: lost or removed")]
    Missing,
    /// The head or the settings record a higher number than the store has.
    #[error(
        "the head or the settings record these numbers: the newest records were lost or removed"
    )]
    TailTruncated,
    /// This machine has seen higher numbers in the store: an older copy of it was put back.
    #[error("this store is older than it was{}: an older copy was put back, or these were removed", on_day(.since))]
    PutBack {
        /// When the last message was said that it had then, if that is known.
        since: Option<Timestamp>,
    },
    /// The head names a forget record that is missing.
    #[error(
        "the head names a forget record here, and it is missing: forgotten messages may have been put back"
    )]
    ForgetMissing,
    /// There are records but no head.
    #[error("there is no head, so a loss of the newest records would go unnoticed")]
    HeadMissing,
    /// The head does not open.
    #[error("the head does not open, so a loss of the newest records would go unnoticed")]
    HeadDamaged,
    /// There are records but no vault, so nothing can be written.
    #[error("there are records but no vault: they can be read, but nothing can be written")]
    VaultMissing,
    /// A forgotten record is still there, because a pack could not be written again on a full disk, or is there again, put
    /// back by a backup or a sync. Reads never return it. The next append that has room removes it.
    #[error(
        "forgotten but still there, as on a full disk, or there again, as after restoring a backup; it is never read, and the next append that has room removes it"
    )]
    Resurrected,
    /// The file has a second name (a hard link) somewhere. Forgetting would not reach that name.
    #[error("the file has a second name somewhere (a hard link), which forgetting does not reach")]
    HardLinked,
    /// An interrupted write left this file behind. The next append removes it.
    #[error("left behind by an interrupted write; the next append removes it")]
    Leftover,
    /// The catalog does not list a conversation that was listed before and that nobody removed since.
    #[error(
        "the catalog does not list this conversation: either the removed conversation or an older catalog was put back"
    )]
    Unlisted,
    /// The settings, a snapshot, an artifact or a whole conversation is recorded but missing.
    #[error("it should exist but is missing: it was lost or removed")]
    Absent,
    /// An older version of the settings or of a snapshot was put back.
    #[error("an older version of it was put back, as by a backup")]
    Outdated,
    /// A message refers to an artifact that does not exist: it was deleted, or never existed.
    #[error("refers to artifact://{id}, which does not exist; it may have been deleted")]
    Dangling {
        /// The artifact's id.
        id: String,
    },
    /// A repair moved files to the quarantine folder. They are never read.
    #[error("a repair moved {}", what_is_quarantined(*.files))]
    Quarantined {
        /// How many entries the folder has.
        files: usize,
    },
    /// The highest number is lower than in the inventory: an older copy of the folder was put back.
    #[error(
        "the inventory has these numbers, but the store does not: an older copy of the folder was put back"
    )]
    RolledBack,
    /// Listed in the inventory, but now neither stored nor recorded as forgotten.
    #[error("the inventory has these, but now they are neither stored nor recorded as forgotten")]
    Vanished,
    /// Recorded as forgotten in the inventory, but no longer.
    #[error(
        "forgotten according to the inventory, but no longer recorded as forgotten: an older copy was put back"
    )]
    TombstoneLost,
    /// These numbers now belong to other records than in the inventory.
    #[error(
        "these numbers belong to other records than in the inventory: an older copy was put back and written to"
    )]
    Replaced,
    /// The inventory was taken under another key, so only numbers could be compared.
    #[error(
        "the inventory was taken under another key, so only numbers were compared, not contents"
    )]
    NotCompared,
}

impl Finding {
    /// A finding about the messages with the numbers from the first to the last of these.
    pub fn about(kind: FindingKind, first: u64, last: u64) -> Self {
        Self { kind, file: None, seqs: Some((first, last)) }
    }

    /// The numbers that the finding concerns.
    pub(crate) fn numbers(&self) -> Option<RangeInclusive<u64>> {
        self.seqs.map(|(first, last)| first..=last)
    }

    /// The record that the finding's file name stands for.
    pub(crate) fn record(&self) -> Option<RecordName> {
        let file = self.file.as_deref()?;
        file.rsplit_once(':').map_or(file, |(_, record)| record).parse().ok()
    }

    /// This finding as an error, if another key, a newer program or a later attempt may read the file.
    pub(crate) fn refusal(&self) -> Option<Error> {
        let place = || self.file.clone().unwrap_or_default();
        match &self.kind {
            FindingKind::WrongKey { found } | FindingKind::UnboundKey { found } => {
                Some(Error::WrongKey { place: place(), found: found.clone() })
            }
            FindingKind::NewerFormat(version) => {
                Some(Error::NewerFormat { place: place(), version: *version })
            }
            FindingKind::Unreadable(kind) => {
                Some(Error::io("read the file", place(), (*kind).into()))
            }
            _ => None,
        }
    }
}

impl FindingKind {
    /// A stable short name for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::WrongKey { .. } => "wrong-key",
            Self::UnboundKey { .. } => "unbound-key",
            Self::Unopenable => "unopenable",
            Self::Damaged(_) => "damaged",
            Self::BadRecord => "bad-record",
            Self::DuplicateNumber => "duplicate-number",
            Self::RedundantCopy => "redundant-copy",
            Self::Foreign => "foreign",
            Self::LegacyFormat => "legacy-format",
            Self::NewerFormat(_) => "newer-format",
            Self::NotPlain(_) => "not-plain",
            Self::Unreadable(_) => "unreadable",
            Self::Missing => "missing",
            Self::TailTruncated => "tail-truncated",
            Self::PutBack { .. } => "put-back",
            Self::ForgetMissing => "forget-missing",
            Self::HeadMissing => "head-missing",
            Self::HeadDamaged => "head-damaged",
            Self::VaultMissing => "vault-missing",
            Self::Resurrected => "resurrected",
            Self::HardLinked => "hard-linked",
            Self::Leftover => "leftover",
            Self::Unlisted => "unlisted",
            Self::Absent => "absent",
            Self::Outdated => "outdated",
            Self::Dangling { .. } => "dangling",
            Self::Quarantined { .. } => "quarantined",
            Self::RolledBack => "rolled-back",
            Self::Vanished => "vanished",
            Self::TombstoneLost => "tombstone-lost",
            Self::Replaced => "replaced",
            Self::NotCompared => "not-compared",
        }
    }

    /// Whether something may be lost or tampered with. Notes, and what the store fixes by itself, are no problems.
    pub fn is_problem(&self) -> bool {
        !matches!(
            self,
            Self::Resurrected
                | Self::Leftover
                | Self::HardLinked
                | Self::RedundantCopy
                | Self::Dangling { .. }
                | Self::Quarantined { .. }
                | Self::NotCompared
        )
    }

    /// Whether another key, a newer program or a later attempt may read the file.
    pub(crate) fn may_open_later(&self) -> bool {
        matches!(
            self,
            Self::WrongKey { .. }
                | Self::UnboundKey { .. }
                | Self::NewerFormat(_)
                | Self::Unreadable(_)
        )
    }

    pub(crate) fn in_file(self, name: impl AsRef<[u8]>) -> Finding {
        let name = name.as_ref();
        Finding {
            kind: self,
            file: Some(shown(name)),
            seqs: str::from_utf8(name).ok().and_then(claimed),
        }
    }

    pub(crate) fn at(self, first: u64, last: u64) -> Finding {
        Finding { kind: self, file: None, seqs: Some((first, last)) }
    }
}

/// A file name as findings show it.
pub(crate) fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).escape_debug().collect()
}

/// The numbers that the name of a record, a pack or a line of a pack stands for.
fn claimed(place: &str) -> Option<(u64, u64)> {
    let packed = place.strip_prefix(PACKS).and_then(|rest| rest.strip_prefix('/'));
    let record = match packed {
        None => place,
        Some(packed) => match packed.split_once(':') {
            Some((_, record)) => record,
            None => return packed.parse().ok().map(|pack: PackName| (pack.lowest, pack.highest)),
        },
    };
    record.parse().ok().map(|record: RecordName| (record.seq, record.seq))
}

fn on_day(since: &Option<Timestamp>) -> String {
    since.map_or_else(String::new, |since| since.strftime(" on %Y-%m-%d %H:%M UTC").to_string())
}

fn what_is_quarantined(files: usize) -> String {
    match files {
        1 => "1 entry there; it is never read, and forgetting does not reach it".to_owned(),
        _ => format!(
            "{files} entries there; they are never read, and forgetting does not reach them"
        ),
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.seqs) {
            (Some(file), _) => write!(f, "{file}: ")?,
            (None, Some((first, last))) if first == last => write!(f, "number {first}: ")?,
            (None, Some((first, last))) => write!(f, "numbers {first} to {last}: ")?,
            (None, None) => {}
        }
        self.kind.fmt(f)
    }
}

/// For machines: `finding`, `file`, `seqs`, `problem` and `meaning`. A front end adds its own advice.
impl Serialize for Finding {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_struct("Finding", 5)?;
        fields.serialize_field("finding", self.kind.code())?;
        fields.serialize_field("file", &self.file)?;
        fields.serialize_field("seqs", &self.seqs)?;
        fields.serialize_field("problem", &self.kind.is_problem())?;
        fields.serialize_field("meaning", &self.kind.to_string())?;
        fields.end()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_says_what_it_counts_and_since_when() {
        let since = Some("2025-08-24T16:36:25Z".parse().unwrap());
        let rest = ": an older copy was put back, or these were removed";
        for (kind, says) in [
            (FindingKind::PutBack { since: None }, format!("this store is older than it was{rest}")),
            (
                FindingKind::PutBack { since },
                format!("this store is older than it was on 2025-08-24 16:36 UTC{rest}"),
            ),
            (
                FindingKind::Quarantined { files: 1 },
                "a repair moved 1 entry there; it is never read, and forgetting does not reach it".into(),
            ),
            (
                FindingKind::Quarantined { files: 2 },
                "a repair moved 2 entries there; they are never read, and forgetting does not reach them"
                    .into(),
            ),
            (
                FindingKind::Damaged("it is cut off"),
                "damaged, perhaps by the disk or by someone: it is cut off; damaged parts are never read"
                    .into(),
            ),
        ] {
            assert_eq!(kind.to_string(), says);
        }
    }
}
