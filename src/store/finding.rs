//! Something about a store that is not as it should be.

use std::fmt;
use std::io;

use serde::Serialize;
use serde::ser::SerializeStruct;

/// One thing that a read or a check found, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// The file's name within the conversation's folder, with anything unprintable escaped.
    pub file: Option<String>,
    /// The first and last number concerned.
    pub seqs: Option<(u64, u64)>,
}

/// Kinds of findings. `Display` gives the meaning in one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// Sealed under a key that was not given.
    WrongKey {
        /// The key's id.
        found: String,
    },
    /// In the right form, but its seal does not fit: changed, renamed, or brought from another conversation.
    Unopenable,
    /// An exact copy of another record under a name that is not its own.
    Misplaced {
        /// The name it was sealed under.
        belongs: String,
    },
    /// Not in the form of an envelope.
    Damaged(&'static str),
    /// Sealed correctly, but what is inside is not a record.
    BadRecord,
    /// Two files that both open carry the same number.
    Duplicate,
    /// A pack with records that are elsewhere as well, as an interruption may leave it. Each counts once.
    Doubled,
    /// A file that this store did not name.
    Foreign,
    /// A record as the system that this format grew from wrote it.
    Ancestor,
    /// Written by a newer version of the format.
    NewerFormat(u64),
    /// A part of the store that a newer program added and this one cannot read.
    Unsupported,
    /// A link, folder, pipe or device where a file should be, or a file too large to be a record.
    NotPlain(&'static str),
    /// The operating system could not read it.
    Unreadable(io::ErrorKind),
    /// Numbers that are neither there nor recorded as forgotten.
    Missing,
    /// The head says that the conversation once went further.
    CutTail,
    /// There are records but no head.
    HeadMissing,
    /// The head does not open.
    HeadDamaged,
    /// There are records but no vault, so nothing can be written.
    VaultMissing,
    /// Forgotten, yet there: put back by a backup or a sync. It is never returned, and removed at the next append.
    Returned,
    /// A second name for the same file exists somewhere, which forgetting would not reach.
    SecondName,
    /// What an interrupted write left behind. It is removed at the next append.
    Leftover,
}

impl FindingKind {
    /// A short name for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::WrongKey { .. } => "wrong-key",
            Self::Unopenable => "unopenable",
            Self::Misplaced { .. } => "misplaced",
            Self::Damaged(_) => "damaged",
            Self::BadRecord => "bad-record",
            Self::Duplicate => "duplicate",
            Self::Doubled => "doubled",
            Self::Foreign => "foreign",
            Self::Ancestor => "ancestor",
            Self::NewerFormat(_) => "newer-format",
            Self::Unsupported => "unsupported",
            Self::NotPlain(_) => "not-plain",
            Self::Unreadable(_) => "unreadable",
            Self::Missing => "missing",
            Self::CutTail => "cut-tail",
            Self::HeadMissing => "head-missing",
            Self::HeadDamaged => "head-damaged",
            Self::VaultMissing => "vault-missing",
            Self::Returned => "returned",
            Self::SecondName => "second-name",
            Self::Leftover => "leftover",
        }
    }

    /// Whether something may be lost or tampered with, as opposed to something the store mends by itself.
    pub fn is_problem(&self) -> bool {
        !matches!(self, Self::Returned | Self::Leftover | Self::SecondName | Self::Doubled)
    }

    pub(crate) fn in_file(self, name: impl AsRef<[u8]>) -> Finding {
        Finding {
            kind: self,
            file: Some(String::from_utf8_lossy(name.as_ref()).escape_debug().collect()),
            seqs: None,
        }
    }

    pub(crate) fn at(self, first: u64, last: u64) -> Finding {
        Finding { kind: self, file: None, seqs: Some((first, last)) }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongKey { found } => {
                write!(f, "sealed under key {found}, which was not given")
            }
            Self::Unopenable => f.write_str(
                "its seal does not fit: it was changed, renamed, or brought from another conversation",
            ),
            Self::Misplaced { belongs } => {
                write!(f, "a record brought here under another name; it belongs at {belongs}")
            }
            Self::Damaged(reason) => write!(f, "damaged: {reason}"),
            Self::BadRecord => f.write_str("its seal is good, but it holds no record this version knows"),
            Self::Duplicate => f.write_str("another record that opens has the same number"),
            Self::Doubled => f.write_str("holds records that are elsewhere as well; each counts once"),
            Self::Foreign => f.write_str("not a file of this store; it is never read as a message"),
            Self::Ancestor => f.write_str(
                "a record in the format of the older system, without authenticated place; it is never read as a message",
            ),
            Self::NewerFormat(version) => {
                write!(f, "written in format version {version}; a newer program reads it")
            }
            Self::Unsupported => f.write_str(
                "added by a newer program; the messages in it are not read by this one",
            ),
            Self::NotPlain(found) => write!(f, "{found} where a record should be; it is not followed"),
            Self::Unreadable(kind) => write!(f, "the operating system could not read it: {kind}"),
            Self::Missing => f.write_str("neither there nor recorded as forgotten: lost or taken away"),
            Self::CutTail => f.write_str(
                "the head says that these were written: the newest records were lost or taken away",
            ),
            Self::HeadMissing => f.write_str(
                "there is no head, so newest records that were taken away would go unnoticed",
            ),
            Self::HeadDamaged => f.write_str(
                "the head does not open, so newest records that were taken away would go unnoticed",
            ),
            Self::VaultMissing => f.write_str(
                "there is no vault beside these records: restore it from a backup before writing",
            ),
            Self::Returned => f.write_str(
                "forgotten, yet there again; it is never returned, and removed at the next append",
            ),
            Self::SecondName => f.write_str(
                "the same file has a second name somewhere, which forgetting does not reach",
            ),
            Self::Leftover => {
                f.write_str("left behind by an interrupted write; removed at the next append")
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
