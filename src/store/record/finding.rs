//! Findings: what a read or a check found wrong with a store.

use std::fmt;
use std::io;

use serde::Serialize;
use serde::ser::SerializeStruct;

use crate::error::Error;
use crate::store::record::layout::PACKS;
use crate::store::record::name::RecordName;
use crate::store::record::pack_name::PackName;

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

/// Kinds of findings. `Display` explains each in one sentence.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// Sealed under a key that the caller did not provide.
    WrongKey {
        /// The key's id.
        found: String,
    },
    /// Sealed under a key that the vault names but that is not bound to this store; or that key itself.
    UnboundKey {
        /// The key's id.
        found: String,
    },
    /// Well formed, but its seal does not verify: it was changed, renamed, or copied from another conversation.
    Unopenable,
    /// An exact copy of another record under a wrong name.
    Misplaced {
        /// The name that it was sealed under.
        belongs: String,
    },
    /// Not a valid envelope.
    Damaged(&'static str),
    /// The seal verifies, but the contents are no record.
    BadRecord,
    /// Two files that both open have the same number.
    Duplicate,
    /// A pack holds records that are stored elsewhere as well. An interrupted writer leaves this behind. Each record
    /// counts once.
    Doubled,
    /// A file that is not part of this store.
    Foreign,
    /// A record in the format of the system that this format replaced.
    LegacyFormat,
    /// Written by a newer version of the format.
    NewerFormat(u64),
    /// A link, folder, pipe or device instead of a file, or a file too large to be a record.
    NotPlain(&'static str),
    /// The operating system could not read it.
    Unreadable(io::ErrorKind),
    /// Numbers that are neither stored nor recorded as forgotten.
    Missing,
    /// The head or the settings record a higher number than the store has.
    TailTruncated,
    /// The head names a forget record that is missing.
    ForgetMissing,
    /// There are records but no head.
    HeadMissing,
    /// The head does not open.
    HeadDamaged,
    /// There are records but no vault, so nothing can be written.
    VaultMissing,
    /// A forgotten record is there again, put back by a backup or a sync. Reads never return it. The next append
    /// removes it.
    Resurrected,
    /// The file has a second name (a hard link) somewhere. Forgetting would not reach that name.
    HardLinked,
    /// An interrupted write left this file behind. The next append removes it.
    Leftover,
    /// The catalog does not list a conversation that was listed before and that nobody removed since.
    Unlisted,
    /// The settings, a snapshot, an artifact or a whole conversation is recorded but missing.
    Absent,
    /// An older version of the settings or of a snapshot was put back.
    Outdated,
    /// A message refers to an artifact that does not exist: it was deleted, or never existed.
    Dangling {
        /// The artifact's id.
        id: String,
    },
    /// A repair moved files to the quarantine folder. They are never read.
    Quarantined {
        /// How many entries the folder has.
        files: usize,
    },
    /// The highest number is lower than in the inventory: an older copy of the folder was put back.
    RolledBack,
    /// Listed in the inventory, but now neither stored nor recorded as forgotten.
    Vanished,
    /// Recorded as forgotten in the inventory, but no longer.
    TombstoneLost,
    /// These numbers now belong to other records than in the inventory.
    Replaced,
    /// The inventory was taken under another key, so only numbers could be compared.
    NotCompared,
}

impl Finding {
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
            Self::Misplaced { .. } => "misplaced",
            Self::Damaged(_) => "damaged",
            Self::BadRecord => "bad-record",
            Self::Duplicate => "duplicate",
            Self::Doubled => "doubled",
            Self::Foreign => "foreign",
            Self::LegacyFormat => "ancestor",
            Self::NewerFormat(_) => "newer-format",
            Self::NotPlain(_) => "not-plain",
            Self::Unreadable(_) => "unreadable",
            Self::Missing => "missing",
            Self::TailTruncated => "cut-tail",
            Self::ForgetMissing => "forget-missing",
            Self::HeadMissing => "head-missing",
            Self::HeadDamaged => "head-damaged",
            Self::VaultMissing => "vault-missing",
            Self::Resurrected => "returned",
            Self::HardLinked => "second-name",
            Self::Leftover => "leftover",
            Self::Unlisted => "unlisted",
            Self::Absent => "absent",
            Self::Outdated => "outdated",
            Self::Dangling { .. } => "dangling",
            Self::Quarantined { .. } => "quarantined",
            Self::RolledBack => "rolled-back",
            Self::Vanished => "vanished",
            Self::TombstoneLost => "unforgotten",
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
                | Self::Doubled
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

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongKey { found } => {
                write!(f, "sealed under key {found}, which was not given, so its words cannot be read")
            }
            Self::UnboundKey { found } => write!(
                f,
                "the vault names key {found}, but the key that writes has not sealed that it belongs to this store: it may be another store's"
            ),
            Self::Unopenable => f.write_str(
                "its seal does not fit: it was changed, renamed, or brought from another conversation, and is never read",
            ),
            Self::Misplaced { belongs } => {
                write!(f, "a record brought here under another name; it is read only at {belongs}")
            }
            Self::Damaged(reason) => {
                write!(f, "damaged, perhaps by the disk or by someone: {reason}; what does not open is never read")
            }
            Self::BadRecord => f.write_str("its seal is good, but it holds no record this version knows"),
            Self::Duplicate => f.write_str(
                "another record that opens has the same number, as after two copies of a folder were mixed; both are read",
            ),
            Self::Doubled => f.write_str(
                "holds records that are elsewhere as well, as an interruption leaves them; each counts once",
            ),
            Self::Unlisted => f.write_str(
                "a conversation that was removed, or that an older list of all does not name: one of both was put back",
            ),
            Self::Absent => f.write_str("it should be there, and is gone: lost, or taken away"),
            Self::Outdated => f.write_str("an older state of it was put back, as by a backup"),
            Self::Foreign => f.write_str("not a file of this store; it is never read as a message"),
            Self::LegacyFormat => f.write_str(
                "a record in the format of the older system, without authenticated place; it is never read as a message",
            ),
            Self::NewerFormat(version) => {
                write!(f, "written in format version {version}; a newer program reads it")
            }
            Self::NotPlain(found) => write!(f, "{found} where a record should be; it is not followed"),
            Self::Unreadable(kind) => {
                write!(f, "the operating system could not read it ({kind}), so its words are out of reach for now")
            }
            Self::Missing => f.write_str("neither there nor recorded as forgotten: lost or taken away"),
            Self::TailTruncated => f.write_str(
                "the head or the settings say that these were written: the newest records were lost or taken away",
            ),
            Self::ForgetMissing => f.write_str(
                "the head tells of a record here of what was forgotten, and it is gone: what was forgotten may have been put back",
            ),
            Self::HeadMissing => f.write_str(
                "there is no head, so newest records that were taken away would go unnoticed",
            ),
            Self::HeadDamaged => f.write_str(
                "the head does not open, so newest records that were taken away would go unnoticed",
            ),
            Self::VaultMissing => f.write_str(
                "there is no vault beside these records; they can be read, but nothing can be written",
            ),
            Self::Resurrected => f.write_str(
                "forgotten, yet there again, as a backup brings it back; it is never returned, and removed at the next append",
            ),
            Self::HardLinked => f.write_str(
                "the same file has a second name somewhere, which forgetting does not reach",
            ),
            Self::Leftover => {
                f.write_str("left behind by an interrupted write; removed at the next append")
            }
            Self::Dangling { id } => {
                write!(f, "refers to artifact://{id}, which is not there; it may have been deleted")
            }
            Self::Quarantined { files: 1 } => {
                f.write_str("1 entry lies there that was set aside; it is never read, and forgetting does not reach it")
            }
            Self::Quarantined { files } => write!(
                f,
                "{files} entries lie there that were set aside; they are never read, and forgetting does not reach them"
            ),
            Self::RolledBack => f.write_str(
                "these were given when the inventory was taken, but not now: an older copy of the folder was put back",
            ),
            Self::Vanished => f.write_str(
                "there when the inventory was taken, but now neither there nor recorded as forgotten",
            ),
            Self::TombstoneLost => f.write_str(
                "recorded as forgotten when the inventory was taken, but not now: an older copy was put back",
            ),
            Self::Replaced => f.write_str(
                "other records lie here than when the inventory was taken: an older copy was put back and written to",
            ),
            Self::NotCompared => f.write_str(
                "the inventory was taken under another key, so that numbers were compared and contents were not",
            ),
        }
    }
}

impl Finding {
    /// What to do about it, in one line.
    pub fn help(&self) -> &'static str {
        use FindingKind as Kind;
        let packed = self.file.as_deref().is_some_and(|file| file.starts_with(PACKS));
        match &self.kind {
            Kind::WrongKey { .. } => "give the key that it was sealed under",
            Kind::UnboundKey { .. } => {
                "end a change of keys that was begun: `sottovoce rekey`; if there is none, `sottovoce repair --quarantine` takes the key out of the vault"
            }
            Kind::Misplaced { .. } => "`sottovoce repair` puts it back to its place",
            Kind::Damaged(_) if packed => "`sottovoce repair` makes a sound pack of what opens",
            Kind::Unopenable | Kind::Damaged(_) | Kind::BadRecord => {
                "restore it from a backup; `sottovoce repair --quarantine` moves it out of the way"
            }
            Kind::LegacyFormat | Kind::Foreign | Kind::NotPlain(_) => {
                "move it away if it is yours; `sottovoce repair --quarantine` does"
            }
            Kind::Duplicate => "read both; `sottovoce forget` takes both away",
            Kind::NewerFormat(_) => "use the newer program that wrote it",
            Kind::Unreadable(_) => "check the disk and the file's mode, then look again",
            Kind::Missing | Kind::TailTruncated | Kind::Vanished => {
                "restore them from a backup, or record each as gone: `sottovoce forget NUMBER`"
            }
            Kind::ForgetMissing => {
                "restore it from a backup, or forget once more what should be gone: `sottovoce forget NUMBER`"
            }
            Kind::HeadMissing | Kind::HeadDamaged => {
                "`sottovoce repair` writes a new one from the records that are there"
            }
            Kind::VaultMissing => {
                "restore `vault` from a backup, or have `sottovoce repair` make one that fits the records"
            }
            Kind::Resurrected | Kind::Leftover | Kind::Doubled => {
                "`sottovoce repair` tidies up at once"
            }
            Kind::Unlisted => {
                "if it is yours, `sottovoce repair --catalog` enters it again; if it was removed, remove it once more"
            }
            Kind::Absent | Kind::Outdated => {
                "restore the newest from a backup, or go on without it: `sottovoce repair`, for a whole conversation `sottovoce repair --catalog`"
            }
            Kind::HardLinked => "find the other name and remove it: `find / -samefile FILE`",
            Kind::RolledBack | Kind::TombstoneLost | Kind::Replaced => {
                "look for the newer folder before anything more is written: `sottovoce forget` and appends go on from here"
            }
            Kind::NotCompared => "take a new one: `sottovoce verify --save FILE`",
            Kind::Dangling { .. } => {
                "`sottovoce artifact list` shows what there is; nothing need be done"
            }
            Kind::Quarantined { .. } => {
                "look through it and delete it when nothing in it is wanted"
            }
        }
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

/// `finding`, `file`, `seqs`, `problem`, `meaning` and `help`, for machines.
impl Serialize for Finding {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut fields = to.serialize_struct("Finding", 6)?;
        fields.serialize_field("finding", self.kind.code())?;
        fields.serialize_field("file", &self.file)?;
        fields.serialize_field("seqs", &self.seqs)?;
        fields.serialize_field("problem", &self.kind.is_problem())?;
        fields.serialize_field("meaning", &self.kind.to_string())?;
        fields.serialize_field("help", &self.help())?;
        fields.end()
    }
}
