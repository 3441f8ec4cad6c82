//! The reader: answers from memory while that is current, and otherwise from the folder.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use crate::clock::Clock;
use crate::error::Result;
use crate::store::folder::decoder::RecordDecoder;
use crate::store::folder::pack::chunk::{ChunkRead, PackChunk};
use crate::store::folder::pack::parallel::parallel_map_ordered;
use crate::store::folder::pack::{OpenedPack, Pack, Reported};
use crate::store::folder::{ATTEMPTS, Folder, HeadState, Listing, Opened, unstable_folder};
use crate::store::read::query::RangeQuery;
use crate::store::read::range_cache::RangeCache;
use crate::store::read::tail::Tail;
use crate::store::read::thread::tails::ThreadTails;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::head::Head;
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;
use crate::store::record::profile::Profile;
use crate::store::record::read_result::ReadResult;
use crate::store::record::retention::Horizon;
use crate::store::record::seq_set::SeqSet;

/// A conversation's folder and its cached tail.
pub(crate) struct Reader {
    pub(crate) folder: Folder,
    clock: Arc<dyn Clock>,
    cache: Mutex<Cache>,
    ranges: Mutex<RangeCache>,
    pub(super) threads: Mutex<Option<ThreadTails>>,
}

#[derive(Default)]
struct Cache {
    tail: Option<Tail>,
    /// Counts updates, so that a slow reader does not replace a newer tail.
    version: u64,
}

impl Reader {
    pub(crate) fn new(folder: Folder, clock: Arc<dyn Clock>) -> Self {
        Self {
            folder,
            clock,
            cache: Mutex::default(),
            ranges: Mutex::default(),
            threads: Mutex::default(),
        }
    }

    /// A reader of the same store's default conversation.
    pub(crate) fn of_root(&self) -> Self {
        Self::new(self.folder.of_root(), Arc::clone(&self.clock))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now().timestamp()
    }

    /// Checks that the folder can be read with the keys at hand.
    pub(crate) fn check(&self) -> Result<()> {
        self.folder.check()
    }

    /// The cached tail, current or not.
    pub(crate) fn known(&self) -> Option<Tail> {
        self.cache().tail.clone()
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ranges(&self) -> MutexGuard<'_, RangeCache> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn install(&self, tail: Option<Tail>) {
        match &tail {
            Some(tail) => self.ranges().forget(&tail.erased),
            None => *self.ranges() = RangeCache::default(),
        }
        let mut cache = self.cache();
        cache.version += 1;
        cache.tail = tail;
    }

    /// The newest `n` messages from memory, if the cached tail is current or the head names what is missing.
    pub(crate) fn remembered(&self, n: usize) -> Result<Option<ReadResult>> {
        let mut cache = self.cache();
        let cache = &mut *cache;
        match &mut cache.tail {
            Some(tail) => {
                if !tail.is_current(&self.folder)? {
                    if !tail.advance_from_head(&self.folder)? {
                        return Ok(None);
                    }
                    cache.version += 1;
                }
            }
            tail @ None => {
                *tail = Tail::read_from_head(&self.folder, n)?;
                cache.version += u64::from(tail.is_some());
            }
        }
        Ok(cache.tail.as_ref().and_then(|tail| tail.shown(n, || self.now())))
    }

    pub(crate) fn read_tail(&self, n: usize) -> Result<ReadResult> {
        let reading = self.load(n)?.shown(n, || self.now()).unwrap_or_default();
        tracing::debug!(messages = reading.messages.len(), "read the newest end");
        for finding in &reading.skipped {
            tracing::warn!(kind = finding.kind.code(), file = finding.file, "passed over");
        }
        Ok(reading)
    }

    /// The current settings.
    pub(crate) fn settings(&self) -> Result<Arc<Profile>> {
        if self.remembered(1)?.is_some()
            && let Some(tail) = &self.cache().tail
        {
            return Ok(Arc::clone(&tail.profile));
        }
        Ok(self.load(0)?.profile)
    }

    /// The current settings, without summaries if the conversation has expired.
    pub(crate) fn shown_settings(&self) -> Result<Arc<Profile>> {
        let settings = self.settings()?;
        if settings.summaries.is_empty() || !self.has_expired()? {
            return Ok(settings);
        }
        Ok(Arc::new(Profile { summaries: Vec::new(), ..Profile::clone(&settings) }))
    }

    /// Whether the conversation has expired: its last message is too old.
    pub(crate) fn has_expired(&self) -> Result<bool> {
        Ok(self.horizon(&self.newest()?)? == Horizon::Expired)
    }

    /// Which part of the conversation is visible. Reads the folder if the tail does not suffice.
    pub(crate) fn horizon(&self, tail: &Tail) -> Result<Horizon> {
        Ok(match tail.horizon(|| self.now()) {
            Some(horizon) => horizon,
            None => self.load(0)?.horizon(|| self.now()).unwrap_or(Horizon::Nothing),
        })
    }

    /// The current tail.
    pub(crate) fn newest(&self) -> Result<Tail> {
        match self.known() {
            Some(tail) if tail.is_current(&self.folder)? => Ok(tail),
            _ => self.load(0),
        }
    }

    /// Reads the tail from disk and caches it.
    pub(crate) fn load(&self, n: usize) -> Result<Tail> {
        let (known, version) = {
            let cache = self.cache();
            (cache.tail.clone(), cache.version)
        };
        let tail = Tail::load(&self.folder, n, known.as_ref())?;
        self.ranges().forget(&tail.erased);
        let mut cache = self.cache();
        // Of two concurrent readers, one may have seen a message that the head does not record yet. The other one
        // must not replace that tail.
        let is_newer = cache.tail.as_ref().is_some_and(|known| known.last_seq < tail.last_seq);
        if cache.version == version || is_newer {
            cache.version += 1;
            cache.tail = Some(tail.clone());
        }
        Ok(tail)
    }

    /// Reads every selected message that is not hidden, in conversation order.
    pub(crate) fn read_if(&self, wanted: &RangeQuery) -> Result<ReadResult> {
        let (mut reading, tail) = self.read_kept(wanted)?;
        let horizon = self.horizon(&tail)?;
        reading.messages.retain(|message| horizon.shows(message.name));
        Ok(reading)
    }

    /// Like [`read_if`](Self::read_if), with messages that are hidden but not removed yet. Returns the tail as well.
    pub(crate) fn read_kept(&self, wanted: &RangeQuery) -> Result<(ReadResult, Tail)> {
        let mut known = self.known();
        for _ in 0..ATTEMPTS {
            let tail = match known.take() {
                Some(tail) if tail.is_current(&self.folder)? && tail.is_intact(&self.folder)? => {
                    tail
                }
                _ => self.load(0)?,
            };
            if let Some(reading) = self.read_once(&tail, wanted)? {
                return Ok((reading, tail));
            }
        }
        let alone = || {
            let tail = Tail::load_alone(&self.folder, 0, None)?;
            Ok(self.read_once(&tail, wanted)?.map(|reading| (reading, tail)))
        };
        self.folder.settled(alone)?.flatten().ok_or_else(|| unstable_folder(&self.folder))
    }

    /// Reads for the holder of the lock: no file can vanish meanwhile.
    pub(crate) fn read_alone(&self, tail: &Tail, wanted: &RangeQuery) -> Result<ReadResult> {
        self.read_once(tail, wanted)?.ok_or_else(|| unstable_folder(&self.folder))
    }

    /// One attempt; `None` if a file vanished after it was listed.
    pub(crate) fn read_once(&self, tail: &Tail, wanted: &RangeQuery) -> Result<Option<ReadResult>> {
        let (listing, head) = self.listing(tail)?;
        let mut loose = PartialRead::of(tail);
        for &name in listing.names.iter().filter(|name| !name.is_forget()) {
            if wanted.has(name) && !tail.erased.contains(name.seq) {
                match self.folder.open(name)? {
                    Opened::Gone => return Ok(None),
                    opened => loose.take(name, opened, || name.to_string()),
                }
            }
        }
        loose.settle();
        let packs = listing.packs.iter().filter(|pack| wanted.may_be_in(pack));
        let packs: Vec<PackName> = packs.copied().collect();
        // First assume that packs are sorted by number. If messages are missing, read all of each pack.
        for thorough in [false, true] {
            let mut found = loose.clone();
            found.is_thorough = thorough;
            let Some(found) = self.read_packs(found, &packs, wanted, head.as_ref())? else {
                return Ok(None);
            };
            if found.has_all(wanted) {
                return Ok(Some(found.reading()));
            }
        }
        Ok(None)
    }

    /// Lists the folder, or returns the cached listing if the head's stamps prove it current. Returns the head if they
    /// prove the listing current.
    fn listing(&self, tail: &Tail) -> Result<(Arc<Listing>, Option<Head>)> {
        let head = match tail.head {
            HeadState::Known(head) if self.folder.matches_stamps(&head)? => head,
            _ => return Ok((Arc::new(self.folder.list()?), None)),
        };
        if let Some(listing) = self.ranges().listing(&head) {
            return Ok((listing, Some(head)));
        }
        let listing = Arc::new(self.folder.list()?);
        if !self.folder.matches_stamps(&head)? {
            return Ok((listing, None));
        }
        self.ranges().set_listing(&head, &listing);
        Ok((listing, Some(head)))
    }

    /// Reads the wanted messages of some packs. If `head` proves the listing of packs current, ranges that were read
    /// lately come from memory.
    fn read_packs<'a>(
        &self,
        mut found: PartialRead<'a>,
        packs: &[PackName],
        wanted: &RangeQuery,
        head: Option<&Head>,
    ) -> Result<Option<PartialRead<'a>>> {
        let (tail, mut reported) = (found.tail, Reported::default());
        let loose: HashSet<RecordName> = found.messages.iter().map(|m| m.name).collect();
        // One readable copy is enough.
        let is_open = |name: RecordName| !tail.erased.contains(name.seq) && !loose.contains(&name);
        let is_thorough = found.is_thorough;
        let whole = |pack: &PackName| is_thorough || wanted.surrounds(pack);
        found.is_thorough = packs.iter().all(whole);
        let head = head.filter(|_| !is_thorough && !matches!(wanted, RangeQuery::Names(_)));
        let mut chunks = Vec::new();
        for &name in packs {
            if let Some(known) = head.and_then(|_| self.ranges().find(name, wanted)) {
                for stored in known.into_iter().filter(|stored| is_open(stored.name)) {
                    found.take(stored.name, Opened::Message(stored), String::new);
                }
                continue;
            }
            match Pack::open(&self.folder, name)? {
                OpenedPack::Pack(pack) if whole(&name) => {
                    chunks.extend(PackChunk::cut(name, 0..pack.size()));
                }
                OpenedPack::Pack(pack) => {
                    for part in wanted.parts_of(&pack)? {
                        chunks.extend(PackChunk::cut(name, part));
                    }
                }
                OpenedPack::Gone => return Ok(None),
                OpenedPack::Skipped(kind) => found.skip(kind.in_file(name.place())),
            }
        }
        let mut has_vanished = false;
        let read = |chunk: &PackChunk| {
            let (mut decoder, mut records, mut has_foreign) =
                (RecordDecoder::new(&self.folder), Vec::new(), false);
            let mut is_whole = chunk.is_only;
            let read = chunk.read(&self.folder, |line| {
                match line.name {
                    None => has_foreign = true,
                    Some(name) if wanted.has(name) && is_open(name) => {
                        let opened = decoder.open(name, line.text(), line.file())?;
                        is_whole &= matches!(opened, Opened::Message(_));
                        records.push((name, opened));
                    }
                    Some(name) => is_whole &= !wanted.has(name),
                }
                Ok(true)
            });
            let read = read?;
            is_whole &= read == ChunkRead::Done && !has_foreign;
            Ok((read, records, has_foreign, is_whole))
        };
        parallel_map_ordered(
            &chunks,
            PackChunk::threads_for(&chunks, || self.folder.threads()),
            read,
            |chunk, (read, records, has_foreign, is_whole)| {
                if let Some(head) = head.filter(|_| is_whole) {
                    let messages = records.iter().filter_map(|(_, opened)| opened.message());
                    self.ranges().add(head, chunk.pack, wanted, messages.cloned().collect());
                }
                has_vanished |= read == ChunkRead::Gone;
                if has_foreign {
                    let kind = FindingKind::Damaged("a line of it is not a record's");
                    found.skip(kind.in_file(chunk.pack.place()));
                }
                for (name, opened) in records {
                    if !matches!(opened, Opened::Skipped(_)) || reported.admits(chunk.pack) {
                        found.take(name, opened, || chunk.pack.place_of(name));
                    }
                }
                Ok(())
            },
        )?;
        found.settle();
        Ok((!has_vanished).then_some(found))
    }
}

/// What a read has found so far.
#[derive(Clone)]
struct PartialRead<'a> {
    tail: &'a Tail,
    reading: ReadResult,
    messages: Vec<Arc<StoredMessage>>,
    /// Whether packs are read completely.
    is_thorough: bool,
}

impl<'a> PartialRead<'a> {
    fn of(tail: &'a Tail) -> Self {
        let reading = tail.newest(0).unwrap_or_default();
        Self { tail, reading, messages: Vec::new(), is_thorough: false }
    }

    fn take(&mut self, name: RecordName, opened: Opened, place: impl FnOnce() -> String) {
        match opened {
            // Higher numbers were appended after the tail was read.
            Opened::Message(message) if name.seq <= self.tail.last_seq => {
                self.messages.push(message);
            }
            Opened::Skipped(kind) => self.skip(kind.in_file(place())),
            Opened::Message(_) | Opened::Forget(_) | Opened::Gone => {}
        }
    }

    fn skip(&mut self, finding: Finding) {
        self.reading.skipped.push(finding);
    }

    /// Sorts the messages and removes duplicates.
    fn settle(&mut self) {
        if !self.messages.is_sorted_by(|a, b| a.name < b.name) {
            self.messages.sort_by_key(|message| message.name);
            self.messages.dedup_by_key(|message| message.name);
        }
    }

    /// Whether everything was found, so that no message can be elsewhere.
    fn has_all(&self, wanted: &RangeQuery) -> bool {
        match wanted {
            RangeQuery::Times(_) | RangeQuery::Names(_) => true,
            RangeQuery::Seqs(_) if self.is_thorough => true,
            RangeQuery::Seqs(seqs) => {
                let mut there = self.tail.without_message();
                let mut numbers: Vec<u64> = self.messages.iter().map(|m| m.seq).collect();
                numbers.sort_unstable();
                there.extend(runs(&numbers));
                let last = (*seqs.end()).min(self.tail.last_seq);
                let wanted: SeqSet = std::iter::once(*seqs.start()..=last).collect();
                wanted.without(&there).count() == 0
            }
        }
    }

    fn reading(self) -> ReadResult {
        let mut reading = ReadResult { messages: self.messages, ..self.reading };
        // The tail may have the same findings.
        let mut seen = HashSet::new();
        reading.skipped.retain(|finding| seen.insert(finding.clone()));
        reading
    }
}

/// Groups sorted numbers into ranges without gaps.
fn runs(numbers: &[u64]) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
    let chunks = numbers.chunk_by(|a, b| b - a <= 1);
    chunks.filter_map(|run| Some(*run.first()?..=*run.last()?))
}
