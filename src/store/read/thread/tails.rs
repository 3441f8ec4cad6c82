//! Which messages are the newest of each thread, so that a thread is read without what other threads have said.
//!
//! All of it is derived from the messages. It only says which to open: a message belongs to the thread that it names
//! itself.

use std::ops::RangeInclusive;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroize;

use crate::error::Result;
use crate::store::folder::{Folder, document};
use crate::store::read::tail::Tail;
use crate::store::record::document::Document;
use crate::store::record::encoding::{StoredMessage, object};
use crate::store::record::name::RecordName;
use crate::store::record::read_result::ReadResult;
use crate::store::record::seq_set::SeqSet;

/// How many messages of a thread are listed.
const LISTED: usize = 512;
/// How many threads are listed.
const THREADS: usize = 4096;
/// How many numbers one read covers.
const STRETCH: u64 = 4096;
/// How many of the covered records with the highest numbers are known by name.
const KNOWN: u64 = 4;
/// The most ranges of numbers without a readable message.
const HOLES: usize = 16;

/// The newest messages of each thread, up to some number. `Debug` is not implemented: threads have the household's words
/// for names.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ThreadTails {
    /// Every message up to this number is covered.
    pub(crate) until: u64,
    /// Whether there may be messages that are not covered, with lower numbers or of threads that are not listed.
    is_partial: bool,
    /// Covered numbers of which no message could be read. It may be read another time.
    missing: SeqSet,
    /// The covered records with the highest numbers. If others have their place, this is not of this conversation.
    newest: Vec<Stem>,
    /// Sorted by id.
    threads: Vec<Thread>,
    /// The numbers that were forgotten when this was last brought up to date.
    #[serde(skip)]
    forgotten: SeqSet,
    /// The number up to which the saved document goes.
    #[serde(skip)]
    pub(crate) saved: u64,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Thread {
    /// `None` for the messages outside all threads.
    id: Option<String>,
    /// Whether it may have older messages than those listed.
    has_more: bool,
    /// The newest ones, in conversation order.
    names: Vec<Stem>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.id.zeroize();
    }
}

/// A record's name as the document has it: without its extension.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Stem(RecordName);

impl Serialize for Stem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.stem())
    }
}

impl<'de> Deserialize<'de> for Stem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stem = String::deserialize(deserializer)?;
        let name = RecordName::from_stem(&stem).map(Self);
        name.ok_or_else(|| serde::de::Error::custom("it is not a record's name"))
    }
}

impl ThreadTails {
    /// The saved document; `None` if there is none that can be read.
    pub(crate) fn load(folder: &Folder) -> Option<Self> {
        match document::open(folder, Document::Threads) {
            Ok(Some(Ok(text))) => {
                let mut tails: Self = object(&text)?;
                tails.saved = tails.until;
                Some(tails)
            }
            Ok(_) => None,
            Err(error) => {
                tracing::warn!(%error, "could not read which messages are the newest of each thread");
                None
            }
        }
    }

    /// Covers only what comes after a number.
    pub(crate) fn after(until: u64) -> Self {
        Self { until, is_partial: until > 0, ..Self::default() }
    }

    /// Covers everything up to the tail's last number. `read` returns the messages with some numbers.
    pub(crate) fn catch_up(
        &mut self,
        tail: &Tail,
        read: impl Fn(RangeInclusive<u64>) -> Result<ReadResult>,
    ) -> Result<()> {
        if self.until > tail.last_seq {
            *self = Self::default();
        }
        if self.forgotten != tail.erased {
            self.forget(&tail.erased);
        }
        let mut first = self.until.saturating_sub(KNOWN) + 1;
        while self.until < tail.last_seq {
            let last = tail.last_seq.min(first.saturating_add(STRETCH));
            let messages = read(first..=last)?.messages;
            if messages.iter().any(|stored| !self.may_precede(stored)) {
                *self = Self { forgotten: tail.erased.clone(), ..Self::default() };
                first = 1;
                continue;
            }
            let mut there = tail.without_message();
            there.extend(messages.iter().map(|stored| stored.seq..=stored.seq));
            let new: SeqSet = std::iter::once(self.until + 1..=last).collect();
            self.missing.extend(new.without(&there).ranges());
            let until = self.until;
            for stored in messages.iter().filter(|stored| stored.seq > until) {
                self.add(stored);
                self.newest.push(Stem(stored.name));
            }
            self.until = last;
            self.newest.retain(|name| name.0.seq + KNOWN > last);
            first = last + 1;
        }
        Ok(())
    }

    /// Whether a message is not covered yet, or has been when its number was.
    fn may_precede(&self, stored: &StoredMessage) -> bool {
        stored.seq > self.until
            || self.missing.contains(stored.seq)
            || self.newest.contains(&Stem(stored.name))
    }

    fn place(&self, id: Option<&str>) -> Result<usize, usize> {
        self.threads.binary_search_by(|thread| thread.id.as_deref().cmp(&id))
    }

    fn add(&mut self, stored: &StoredMessage) {
        let id = stored.message.thread_id.as_deref();
        let at = self.place(id).unwrap_or_else(|at| {
            let id = id.map(str::to_owned);
            self.threads.insert(at, Thread { id, has_more: self.is_partial, names: Vec::new() });
            at
        });
        if let Some(Thread { has_more, names, .. }) = self.threads.get_mut(at) {
            let name = Stem(stored.name);
            names.insert(names.partition_point(|other| *other < name), name);
            *has_more |= names.len() > LISTED;
            names.drain(..names.len().saturating_sub(LISTED));
        }
        if self.threads.len() > THREADS {
            let newest = |thread: &Thread| thread.names.last().map(|name| name.0);
            let threads = self.threads.iter().enumerate();
            let oldest = threads.min_by_key(|(_, thread)| newest(thread)).map(|(at, _)| at);
            oldest.map(|at| self.threads.remove(at));
            self.is_partial = true;
        }
    }

    /// Takes out forgotten messages, and threads of which nothing is left. Returns whether any was listed.
    pub(crate) fn forget(&mut self, forgotten: &SeqSet) -> bool {
        let mut has_changed = false;
        let mut is_partial = self.is_partial;
        self.threads.retain_mut(|thread| {
            let before = thread.names.len();
            thread.names.retain(|name| !forgotten.contains(name.0.seq));
            has_changed |= thread.names.len() < before;
            let is_left = !thread.names.is_empty();
            is_partial |= !is_left && thread.has_more;
            is_left
        });
        self.is_partial = is_partial;
        self.newest.retain(|name| !forgotten.contains(name.0.seq));
        self.missing = self.missing.without(forgotten);
        self.forgotten.clone_from(forgotten);
        has_changed
    }

    /// Takes out messages that are about to be forgotten. They are looked for until they are.
    pub(crate) fn withdraw(&mut self, seqs: &SeqSet) -> bool {
        let before = self.missing.clone();
        let is_changed = self.forget(seqs);
        let covered = SeqSet::up_to(self.until);
        self.missing = before;
        self.missing.extend(covered.without(&covered.without(seqs)).ranges());
        is_changed
    }

    /// The newest `n` messages of a thread among those that `shows` shows, sorted, and whether these are all; `None` if
    /// others may be among them.
    pub(crate) fn newest(
        &self,
        thread: Option<&str>,
        n: usize,
        shows: impl Fn(RecordName) -> bool,
    ) -> Option<(Vec<RecordName>, bool)> {
        let known = self.place(thread).ok().and_then(|at| self.threads.get(at));
        let listed = known.map(|thread| thread.names.as_slice()).unwrap_or_default();
        let names: Vec<_> = listed.iter().map(|name| name.0).filter(|name| shows(*name)).collect();
        // What is older than something hidden is hidden too.
        let has_more =
            names.len() == listed.len() && known.map_or(self.is_partial, |known| known.has_more);
        if names.len() < n && has_more || self.missing.ranges().count() > HOLES {
            return None;
        }
        let chosen = names.get(names.len().saturating_sub(n)..).unwrap_or_default();
        Some((chosen.to_vec(), chosen.len() == names.len() && !has_more))
    }

    /// Whether covering everything anew may list more of a thread.
    pub(crate) fn may_list_more(&self, thread: Option<&str>) -> bool {
        let known = self.place(thread).ok().and_then(|at| self.threads.get(at));
        let listed = known.map_or(0, |thread| thread.names.len());
        let has_more = known.map_or(self.is_partial, |known| known.has_more);
        listed < LISTED && has_more
    }

    /// Covered numbers whose message could not be read at that time.
    pub(crate) fn missing(&self) -> &SeqSet {
        &self.missing
    }
}
