//! Reading: from memory while that is current, else from the folder.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::error::Result;
use crate::store::Reading;
use crate::store::finding::{Finding, FindingKind};
use crate::store::folder::{ATTEMPTS, Folder, Opened, restless};
use crate::store::name::{NameTime, RecordName};
use crate::store::pack::lines::Lines;
use crate::store::pack::{OpenedPack, Pack, PackName, Reported};
use crate::store::record::StoredMessage;
use crate::store::tail::Tail;

/// Which messages a reading asks for.
#[derive(Debug, Clone)]
pub(crate) enum Wanted {
    Seqs(RangeInclusive<u64>),
    Times(Range<Timestamp>),
}

impl Wanted {
    fn has(&self, name: RecordName) -> bool {
        match self {
            Self::Seqs(seqs) => seqs.contains(&name.seq),
            Self::Times(times) => name.time.timestamp().is_some_and(|time| times.contains(&time)),
        }
    }

    /// Whether a pack may hold any of them.
    fn may_be_in(&self, pack: &PackName) -> bool {
        match self {
            Self::Seqs(seqs) => *seqs.start() <= pack.highest && pack.lowest <= *seqs.end(),
            Self::Times(times) => {
                pack.last.time.timestamp().is_none_or(|last| times.start <= last)
                    && pack.first.time.timestamp().is_none_or(|first| first < times.end)
            }
        }
    }

    /// The lines of a pack from the first wanted one on.
    fn lines<'a>(&self, pack: &'a Pack) -> Result<Lines<'a>> {
        match self {
            Self::Times(times) => match NameTime::try_from(times.start) {
                Ok(start) => Lines::since(pack, start),
                Err(_) => Ok(Lines::new(pack)),
            },
            Self::Seqs(_) => Ok(Lines::new(pack)),
        }
    }

    /// Whether no line after this one is wanted.
    fn is_over(&self, name: RecordName) -> bool {
        match self {
            Self::Seqs(_) => false,
            Self::Times(times) => name.time.timestamp().is_some_and(|time| time >= times.end),
        }
    }
}

/// A folder and what is remembered of its newest end.
pub(crate) struct Reader {
    pub(crate) folder: Folder,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    tail: Option<Tail>,
    /// Counts installations, so that a slow reader does not put back what it read before someone else's.
    version: u64,
}

impl Reader {
    pub(crate) fn new(folder: Folder) -> Self {
        Self { folder, cache: Mutex::default() }
    }

    /// Whether the folder can be read with the keys at hand.
    pub(crate) fn check(&self) -> Result<()> {
        self.folder.vault()?;
        self.folder.head()?;
        Ok(())
    }

    /// What is remembered, current or not.
    pub(crate) fn known(&self) -> Option<Tail> {
        self.cache().tail.clone()
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn install(&self, tail: Option<Tail>) {
        let mut cache = self.cache();
        cache.version += 1;
        cache.tail = tail;
    }

    /// The newest `n` from memory, if memory is current.
    pub(crate) fn remembered(&self, n: usize) -> Result<Option<Reading>> {
        let cache = self.cache();
        Ok(match &cache.tail {
            Some(tail) if tail.is_current(&self.folder)? => tail.newest(n),
            _ => None,
        })
    }

    pub(crate) fn read_tail(&self, n: usize) -> Result<Reading> {
        let (known, version) = {
            let cache = self.cache();
            (cache.tail.clone(), cache.version)
        };
        let tail = Tail::load(&self.folder, n, known.as_ref())?;
        let reading = tail.newest(n).unwrap_or_default();
        tracing::debug!(messages = reading.messages.len(), "read the newest end");
        for finding in &reading.skipped {
            tracing::warn!(kind = finding.kind.code(), file = finding.file, "passed over");
        }
        let mut cache = self.cache();
        // Of two readers at once, one may have seen a message that the head does not tell of yet: what the other
        // remembers must not hide it again.
        let is_newer = cache.tail.as_ref().is_some_and(|known| known.last_seq < tail.last_seq);
        if cache.version == version || is_newer {
            cache.version += 1;
            cache.tail = Some(tail);
        }
        Ok(reading)
    }

    /// Every message that is wanted, in conversation order.
    pub(crate) fn read_if(&self, wanted: &Wanted) -> Result<Reading> {
        for _ in 0..ATTEMPTS {
            let tail = Tail::load(&self.folder, 0, None)?;
            if let Some(reading) = self.read_once(&tail, wanted)? {
                return Ok(reading);
            }
        }
        let alone = || self.read_once(&Tail::load_alone(&self.folder, 0, None)?, wanted);
        self.folder.settled(alone)?.flatten().ok_or_else(|| restless(&self.folder))
    }

    /// `None` where a file vanished between being listed and being read.
    pub(crate) fn read_once(&self, tail: &Tail, wanted: &Wanted) -> Result<Option<Reading>> {
        let (mut found, mut reported) = (Found::of(tail), Reported::default());
        let listing = self.folder.list()?;
        for name in listing.names.into_iter().filter(|name| !name.is_forget()) {
            if wanted.has(name)
                && found.lacks(name)
                && !found.take(name, self.folder.open(name)?, || name.to_string())
            {
                return Ok(None);
            }
        }
        for name in listing.packs.into_iter().filter(|pack| wanted.may_be_in(pack)) {
            let pack = match Pack::open(&self.folder, name)? {
                OpenedPack::Pack(pack) => pack,
                OpenedPack::Gone => return Ok(None),
                OpenedPack::Skipped(kind) => {
                    found.skip(kind.in_file(name.place()));
                    continue;
                }
            };
            let mut lines = wanted.lines(&pack)?;
            while let Some(line) = lines.next()? {
                let Some(record) = line.name else {
                    let kind = FindingKind::Damaged("a line of it is not a record's");
                    found.skip(kind.in_file(name.place()));
                    continue;
                };
                if wanted.has(record) && found.lacks(record) {
                    let opened = self.folder.open_bytes(record, line.file())?;
                    if !matches!(opened, Opened::Skipped(_)) || reported.admits(name) {
                        found.take(record, opened, || name.place_of(record));
                    }
                } else if wanted.is_over(record) {
                    break;
                }
            }
        }
        Ok(Some(found.into_reading()))
    }
}

/// What a reading has found so far.
struct Found<'a> {
    tail: &'a Tail,
    reading: Reading,
    messages: BTreeMap<RecordName, Arc<StoredMessage>>,
}

impl<'a> Found<'a> {
    fn of(tail: &'a Tail) -> Self {
        let reading = tail.newest(0).unwrap_or_default();
        Self { tail, reading, messages: BTreeMap::new() }
    }

    /// Whether a record may be returned and is not here yet: of several copies, one that opens is enough.
    fn lacks(&self, name: RecordName) -> bool {
        !self.tail.erased.contains(name.seq) && !self.messages.contains_key(&name)
    }

    /// `false` where the record has gone.
    fn take(&mut self, name: RecordName, opened: Opened, place: impl FnOnce() -> String) -> bool {
        match opened {
            // It was appended since the tail was read.
            Opened::Message(_) if name.seq > self.tail.last_seq => {}
            Opened::Message(message) => {
                self.messages.insert(name, message);
            }
            Opened::Skipped(kind) => self.skip(kind.in_file(place())),
            Opened::Forget(_) => {}
            Opened::Gone => return false,
        }
        true
    }

    fn skip(&mut self, finding: Finding) {
        if !self.reading.skipped.contains(&finding) {
            self.reading.skipped.push(finding);
        }
    }

    fn into_reading(mut self) -> Reading {
        self.reading.messages = self.messages.into_values().collect();
        self.reading
    }
}
