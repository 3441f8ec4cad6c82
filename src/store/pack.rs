//! A pack: many records in one file, so that a folder stays small however long a conversation grows.

pub(crate) mod check;
pub(crate) mod chunk;
pub(crate) mod lines;
pub(crate) mod merge;
pub(crate) mod parallel;
pub(crate) mod purge;

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use crate::blob::{Fill, READ_LIMIT, Sink, Source, Streamed};
use crate::error::{Error, Result};
use crate::store::folder::{Folder, unreadable};
use crate::store::record::finding::FindingKind;
use crate::store::record::layout::PACKS;
use crate::store::record::name::RecordName;

/// What is wrong with a pack that lies.
pub(crate) const INCOMPLETE: &str = "it does not hold exactly the records that its name says";

/// The largest pack that is read. Packs are written far smaller.
const LARGEST: u64 = 1 << 30;

/// How many of a pack's lines that do not open a reading reports.
const REPORTED: usize = 8;

/// The longest line that is read: a record's file at its longest, after its name.
const LONGEST: u64 = if cfg!(fuzzing) { 1024 } else { READ_LIMIT + 128 };

/// The name of a pack: its first and last record in the order of conversations, their lowest and highest number, and
/// how many there are. In the order of their first records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PackName {
    pub(crate) first: RecordName,
    pub(crate) last: RecordName,
    pub(crate) lowest: u64,
    pub(crate) highest: u64,
    pub(crate) count: u64,
}

impl PackName {
    /// The name of a pack of one record, to which others are [added](Self::add).
    fn of_one(name: RecordName) -> Self {
        Self { first: name, last: name, lowest: name.seq, highest: name.seq, count: 1 }
    }

    /// The name with one more record.
    pub(crate) fn add(name: &mut Option<Self>, record: RecordName) {
        match name {
            None => *name = Some(Self::of_one(record)),
            Some(name) => {
                name.first = name.first.min(record);
                name.last = name.last.max(record);
                name.lowest = name.lowest.min(record.seq);
                name.highest = name.highest.max(record.seq);
                name.count += 1;
            }
        }
    }

    /// The name of both packs' records.
    fn joined(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            lowest: self.lowest.min(other.lowest),
            highest: self.highest.max(other.highest),
            count: self.count + other.count,
        }
    }

    pub(crate) fn seqs(&self) -> RangeInclusive<u64> {
        self.lowest..=self.highest
    }

    /// Whether a record may lie in it, as far as its name says.
    pub(crate) fn covers(&self, record: RecordName) -> bool {
        (self.first..=self.last).contains(&record) && self.seqs().contains(&record.seq)
    }

    /// Whether all of another pack's records may lie in it.
    pub(crate) fn surrounds(&self, other: &Self) -> bool {
        self != other && self.count >= other.count && self.covers_range(other)
    }

    fn covers_range(&self, other: &Self) -> bool {
        self.first <= other.first
            && other.last <= self.last
            && self.lowest <= other.lowest
            && other.highest <= self.highest
    }

    /// The pack's file within the conversation's folder, for messages.
    pub(crate) fn place(&self) -> String {
        format!("{PACKS}/{self}")
    }

    /// One of its records, for messages.
    pub(crate) fn place_of(&self, record: RecordName) -> String {
        format!("{PACKS}/{self}:{record}")
    }
}

impl fmt::Display for PackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, lowest, highest, count } = self;
        write!(f, "{}.{}.{lowest}-{highest}.{count}.pack", first.stem(), last.stem())
    }
}

/// Accepts only what `Display` writes.
impl FromStr for PackName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.strip_suffix(".pack").ok_or(())?.split('.');
        let mut part = || parts.next().ok_or(());
        let (first, last, seqs, count) = (part()?, part()?, part()?, part()?);
        if parts.next().is_some() {
            return Err(());
        }
        let (lowest, highest) = seqs.split_once('-').ok_or(())?;
        let number = |digits: &str| {
            let canonical = digits == "0" || !digits.starts_with(['0', '+']);
            digits.parse::<u64>().ok().filter(|_| canonical).ok_or(())
        };
        let name = Self {
            first: RecordName::from_stem(first).ok_or(())?,
            last: RecordName::from_stem(last).ok_or(())?,
            lowest: number(lowest)?,
            highest: number(highest)?,
            count: number(count)?,
        };
        let ends = [name.first, name.last];
        let possible = name.first <= name.last
            && name.count > 0
            && ends.iter().all(|end| !end.is_forget() && name.seqs().contains(&end.seq));
        possible.then_some(name).ok_or(())
    }
}

/// What came of opening a pack.
#[derive(Debug)]
pub(crate) enum OpenedPack {
    Pack(Pack),
    Skipped(FindingKind),
    /// It was there when the folder was listed.
    Gone,
}

/// An open pack. It stays readable when it is merged away.
#[derive(Debug)]
pub(crate) struct Pack {
    pub(crate) name: PackName,
    pub(crate) source: Box<dyn Source>,
    pub(crate) path: PathBuf,
}

impl Pack {
    pub(crate) fn open(folder: &Folder, name: PackName) -> Result<OpenedPack> {
        let text = name.to_string();
        Ok(match folder.packs.open(&text) {
            Ok(Some(source)) if source.size() > LARGEST => {
                OpenedPack::Skipped(FindingKind::NotPlain("a file over 1 GiB"))
            }
            Ok(Some(source)) => {
                let path = folder.packs.path().join(text);
                OpenedPack::Pack(Self { name, source, path })
            }
            Ok(None) => OpenedPack::Gone,
            Err(error) => OpenedPack::Skipped(unreadable(error)?),
        })
    }

    pub(crate) fn size(&self) -> u64 {
        self.source.size()
    }

    pub(crate) fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.source
            .read_at(offset, into)
            .map_err(|error| Error::io("read the pack", &self.path, error))
    }

    /// Gives a part of its bytes away as they are.
    pub(crate) fn copy(&self, span: std::ops::Range<u64>, sink: &mut Sink<'_>) -> Result<()> {
        let mut chunk = vec![0; 1 << 16];
        let mut at = span.start;
        while at < span.end {
            let wanted = usize::try_from(span.end - at).unwrap_or(usize::MAX).min(chunk.len());
            let read = self.read_at(at, chunk.get_mut(..wanted).unwrap_or_default())?;
            if read == 0 {
                break;
            }
            sink(chunk.get(..read).unwrap_or_default())?;
            at += read as u64;
        }
        Ok(())
    }
}

/// One line of a pack.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    /// Where in the file it lies, its end included.
    pub(crate) span: std::ops::Range<u64>,
    /// Whose it is; `None` where it is no record's line.
    pub(crate) name: Option<RecordName>,
    /// With the line's end; empty where it is too long to be a record's.
    pub(crate) bytes: Vec<u8>,
    pub(crate) tab: usize,
}

impl Line {
    fn new(start: u64, length: u64, bytes: Vec<u8>) -> Self {
        let longest_name = 64;
        let tab = bytes.iter().take(longest_name).position(|byte| *byte == b'\t');
        let name = tab
            .filter(|_| bytes.ends_with(b"\n"))
            .and_then(|tab| str::from_utf8(bytes.get(..tab)?).ok()?.parse().ok())
            .filter(|name: &RecordName| !name.is_forget());
        Self { span: start..start + length, name, bytes, tab: tab.unwrap_or(0) }
    }

    /// The name as it stands there.
    pub(crate) fn text(&self) -> &str {
        self.bytes.get(..self.tab).and_then(|name| str::from_utf8(name).ok()).unwrap_or_default()
    }

    /// What would be the record's own file.
    pub(crate) fn file(&self) -> &[u8] {
        self.bytes.get(self.tab + 1..).unwrap_or_default()
    }
}

/// How often packs were reported, so that one full of rubbish does not fill the memory. A check tells everything.
#[derive(Debug, Default)]
pub(crate) struct Reported(HashMap<PackName, usize>);

impl Reported {
    /// Whether one more line of the pack is to be reported.
    pub(crate) fn admits(&mut self, pack: PackName) -> bool {
        let times = self.0.entry(pack).or_default();
        *times += 1;
        *times <= REPORTED
    }
}

/// Publishes a pack and makes it durable. An equal one that is there already, as an interruption leaves it, is as
/// good; anything else under its name stays and is an error.
pub(crate) fn publish(folder: &Folder, fill: &mut Fill<'_>) -> Result<Option<PackName>> {
    let name = match folder.packs.stream(fill)? {
        Streamed::Abandoned => return Ok(None),
        Streamed::Published(name) => name,
        Streamed::Taken(name) => {
            let place = folder.packs.path().join(&name).display().to_string();
            let taken = Error::Damaged { place, reason: "something else has a pack's name" };
            let Some(there) = folder.packs.open(&name)? else {
                return Err(taken);
            };
            let (mut at, mut equal, mut chunk) = (0, true, Vec::new());
            fill(&mut |bytes| {
                chunk.resize(bytes.len(), 0);
                let read = there.read_at(at, &mut chunk);
                at += bytes.len() as u64;
                equal &= read.is_ok_and(|read| read == bytes.len()) && chunk == bytes;
                Ok(())
            })?;
            if !equal || at != there.size() {
                return Err(taken);
            }
            folder.packs.flush(&name)?;
            name
        }
    };
    folder.packs.sync()?;
    Ok(name.parse().ok())
}
