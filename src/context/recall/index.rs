//! The index of one conversation: loaded from the store's segments, brought up to date, and written back.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::Zoned;
use sottovoce_recall::{
    Asked, BuildOptions, Hit, Index, Question, Segment, UtteranceKind, Why, put_newer_first,
    select_within,
};
use tokio::sync::Mutex;

use super::block::{Block, turn};
use crate::error::{Error, Result};
use crate::message::ChatRole;
use crate::store::record::document::{BLOCK, DocumentId, block_of, block_seqs};
use crate::store::record::seq_set::SeqSet;
use crate::store::{Batch, ConversationStore, Finding, ReadQuery, StoreState, StoredMessage};

/// A block's segment is written again once it lacks this many numbers.
const WRITTEN_AFTER: u64 = 256;
/// How many hits are looked at first for those that may be seen.
const FIRST: usize = 64;
/// The most hits that are looked at.
const MOST: usize = 4096;

/// The index of one conversation. It is made from the stored messages and kept up to date with them.
///
/// The store keeps it in sealed segments, each deleted as soon as one of its messages is forgotten. A segment that is
/// missing, damaged or of another version is made again from the messages.
pub struct Recall {
    store: Arc<dyn ConversationStore>,
    loaded: Mutex<Loaded>,
}

/// What is in memory.
#[derive(Default)]
struct Loaded {
    index: Index,
    /// Every message up to this number is in the index.
    last_seq: u64,
    forgotten: SeqSet,
    /// For each block, the number up to which its stored segment goes; 0 without one.
    written: Vec<u64>,
    /// What could not be read.
    skipped: Vec<Finding>,
}

/// A question about what was said. `Debug` shows no words.
#[derive(Clone)]
#[non_exhaustive]
pub struct RecallQuery<'a> {
    /// The question.
    pub text: &'a str,
    /// What the same person said just before, newest first. A question such as “and his age?” takes words from it.
    pub earlier: &'a [&'a str],
    /// The name of the person who asks, as their messages have it.
    pub speaker: Option<&'a str>,
    /// The time of the question. “last Tuesday” is relative to it.
    pub now: Zoned,
    /// The most hits to return.
    pub limit: usize,
}

impl<'a> RecallQuery<'a> {
    /// A question at that time, with at most `limit` hits.
    pub fn new(text: &'a str, now: Zoned, limit: usize) -> Self {
        Self { text, earlier: &[], speaker: None, now, limit }
    }
}

impl fmt::Debug for RecallQuery<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecallQuery")
            .field("text_bytes", &self.text.len())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// A message that was found. `Debug` shows no words.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RecallHit {
    /// The message.
    pub stored: Arc<StoredMessage>,
    /// How well it fits. Scores of different questions may be compared.
    pub score: f32,
    /// The passage that fits best, in bytes of the message's text.
    pub passage: RangeInclusive<usize>,
    /// What made the score.
    pub why: Why,
    pub(super) hit: Hit,
}

/// The result of a question.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Recalled {
    /// The hits, best first.
    pub hits: Vec<RecallHit>,
    /// The score that a message must reach to be worth bringing into a prompt: infinite for small talk, high for
    /// commands and questions about now, lower for questions about the past and about people.
    pub min_score: f32,
    /// Whether the question took words from what was said just before.
    pub is_follow_up: bool,
    /// What could not be read on the way.
    pub skipped: Vec<Finding>,
}

impl Recall {
    /// The index of the conversation in a store. Reads nothing before the first question.
    pub fn new(store: Arc<dyn ConversationStore>) -> Self {
        Self { store, loaded: Mutex::default() }
    }

    /// The conversation's store.
    pub fn store(&self) -> &Arc<dyn ConversationStore> {
        &self.store
    }

    /// Finds the messages that fit a question best, among those that `may_see` shows.
    ///
    /// # Errors
    /// Those of reading the conversation.
    pub async fn find(
        &self,
        query: &RecallQuery<'_>,
        may_see: impl Fn(&StoredMessage) -> bool + Send + Sync,
    ) -> Result<Recalled> {
        let mut loaded = self.loaded.lock().await;
        loaded.refresh(&*self.store).await?;
        let Some(years) = loaded.index.years() else { return Ok(Recalled::default()) };
        let mut asked = Asked::new(query.now.clone(), years);
        asked.earlier = query.earlier;
        asked.speaker = query.speaker;
        let question = Question::new(query.text, &asked);
        let min_score = loaded.index.min_score(&question);
        let is_follow_up = question.is_follow_up();
        let is_command = |question: &Question| {
            matches!(question.kind(), UtteranceKind::Command | UtteranceKind::Now)
        };
        // Commands resemble earlier commands, of which nobody needs to be reminded.
        let is_repeated = |stored: &StoredMessage| {
            is_command(&question)
                && stored.message.role == ChatRole::User
                && is_command(&Question::new(&stored.message.content, &asked))
        };
        let mut wanted = FIRST.max(query.limit.saturating_mul(2));
        loop {
            let mut hits = loaded.index.rank(&question, |_| true, wanted);
            put_newer_first(&mut hits, &question);
            let is_all = hits.len() < wanted || wanted >= MOST;
            let skipped = loaded.skipped.clone();
            let mut recalled = Recalled { hits: Vec::new(), min_score, is_follow_up, skipped };
            for hit in hits {
                if recalled.hits.len() >= query.limit {
                    break;
                }
                let found = self.store.read(ReadQuery::Seqs(hit.seq..=hit.seq)).await?;
                recalled.skipped.extend(found.skipped);
                let stored = found.messages.into_iter().next();
                if let Some(stored) =
                    stored.filter(|stored| may_see(stored) && !is_repeated(stored))
                {
                    recalled.hits.push(RecallHit::new(stored, hit));
                }
            }
            if is_all || recalled.hits.len() >= query.limit {
                return Ok(recalled);
            }
            wanted = wanted.saturating_mul(4).min(MOST);
        }
    }

    /// Finds the messages of a thread that fit a question best, without those that are cleared, pruned or expired.
    ///
    /// # Errors
    /// Those of reading the conversation.
    pub async fn find_in(&self, query: &RecallQuery<'_>, thread: Option<&str>) -> Result<Recalled> {
        let profile = self.store.profile().await?;
        let now = query.now.timestamp();
        let may_see = |stored: &StoredMessage| {
            stored.message.thread_id.as_deref() == thread
                && !stored.message.has_expired(now)
                && !profile.hides(stored)
                && !profile.is_pruned(stored.seq)
        };
        self.find(query, may_see).await
    }

    /// Writes segments that are missing or far behind into the store. Call it while nobody waits. If the conversation
    /// changes meanwhile, nothing is written, and the next call tries again.
    ///
    /// # Errors
    /// Those of reading and writing the conversation.
    pub async fn save(&self) -> Result<()> {
        let mut loaded = self.loaded.lock().await;
        loaded.refresh(&*self.store).await?;
        match loaded.save(&*self.store).await {
            Err(Error::Conflict) => Ok(()),
            saved => saved,
        }
    }

    /// Whether [`save`](Self::save) would write something.
    pub async fn is_behind(&self) -> bool {
        let loaded = self.loaded.lock().await;
        loaded.behind().next().is_some()
    }
}

/// The characters that a line takes beside its text: time and speaker.
pub(super) const LINE: usize = 40;

impl Recalled {
    /// The hits that fit a number of tokens, at four characters a token: by score, with short ones before long ones
    /// that are little better.
    #[must_use]
    pub fn within(self, tokens: usize) -> Self {
        let hits: Vec<Hit> = self.hits.iter().map(|hit| hit.hit.clone()).collect();
        let chosen = select_within(&hits, tokens, |hit| hit.length as usize + LINE, |_| 0);
        let chosen: Vec<u64> = chosen.iter().map(|hit| hit.seq).collect();
        let hits = self.hits.into_iter().filter(|hit| chosen.contains(&hit.stored.seq));
        Self { hits: hits.collect(), ..self }
    }
}

impl RecallHit {
    fn new(stored: Arc<StoredMessage>, hit: Hit) -> Self {
        let passage = hit.passage.start..=hit.passage.end.saturating_sub(1);
        Self { stored, score: hit.score, passage, why: hit.why.clone(), hit }
    }
}

impl Loaded {
    /// Brings the index up to date with the store.
    async fn refresh(&mut self, store: &dyn ConversationStore) -> Result<()> {
        let state = store.state().await?;
        if state.last_seq == self.last_seq && state.forgotten == self.forgotten {
            return Ok(());
        }
        if state.last_seq < self.last_seq || !self.forgotten.without(&state.forgotten).is_empty() {
            // Another conversation has the place of this one, or an older copy of it.
            *self = Self::default();
        }
        self.forget(&state);
        if self.last_seq == 0 {
            self.load(store, &state).await?;
        }
        self.add(store, &state).await
    }

    /// Takes out what was forgotten.
    fn forget(&mut self, state: &StoreState) {
        let newly = state.forgotten.without(&self.forgotten);
        if !newly.is_empty() && self.last_seq > 0 {
            self.index.retain(|seq| !newly.contains(seq));
            for (block, written) in (0..).zip(&mut self.written) {
                if newly.intersects(&block_seqs(block)) {
                    *written = 0;
                }
            }
        }
        self.forgotten.clone_from(&state.forgotten);
    }

    /// Loads the stored segments. After the first that does not cover its block, the rest is made from the messages.
    async fn load(&mut self, store: &dyn ConversationStore, state: &StoreState) -> Result<()> {
        let mut is_whole = true;
        for block in 0..=block_of(state.last_seq) {
            let stored = match store.document(&DocumentId::Segment(block)).await {
                Ok(bytes) => bytes.and_then(|bytes| {
                    let read = Block::from_bytes(block, &bytes, state.last_seq, &state.forgotten);
                    if read.is_none() {
                        tracing::warn!(block, "a segment of the search index is made again");
                    }
                    read
                }),
                Err(error) => {
                    tracing::warn!(%error, block, "a segment of the search index is made again");
                    None
                }
            };
            self.written.push(stored.as_ref().map_or(0, |block| block.until));
            let seqs = block_seqs(block);
            let end = (*seqs.end()).min(state.last_seq);
            let is_last = block == block_of(state.last_seq);
            match stored {
                Some(stored) if is_last || stored.until == *seqs.end() => {
                    self.last_seq = stored.until;
                    self.index.insert(block, stored.segment);
                }
                stored => {
                    let (after, begun) = match stored {
                        Some(stored) => (stored.until, stored.segment),
                        None => (seqs.start() - 1, Segment::default()),
                    };
                    let rest = self.build(store, after + 1..=end).await?;
                    self.index.insert(block, Segment::join([&begun, &rest]));
                    self.last_seq = end;
                    is_whole = false;
                }
            }
        }
        if !is_whole {
            tracing::debug!(messages = self.index.len(), "made the search index");
        }
        Ok(())
    }

    /// Adds what was said since.
    async fn add(&mut self, store: &dyn ConversationStore, state: &StoreState) -> Result<()> {
        while self.last_seq < state.last_seq {
            let first = self.last_seq.saturating_add(1);
            let last = state.last_seq.min(self.last_seq.saturating_add(BLOCK));
            let result = store.read(ReadQuery::Seqs(first..=last)).await?;
            for stored in &result.messages {
                if let Some(turn) = turn(stored) {
                    self.index.push(&turn);
                }
            }
            self.skipped.extend(result.skipped);
            self.last_seq = last;
        }
        let blocks = usize::try_from(block_of(state.last_seq)).unwrap_or(0) + 1;
        self.written.resize(blocks.max(self.written.len()), 0);
        Ok(())
    }

    /// The segment of the messages with these numbers.
    async fn build(
        &mut self,
        store: &dyn ConversationStore,
        seqs: RangeInclusive<u64>,
    ) -> Result<Segment> {
        let result = store.read(ReadQuery::Seqs(seqs)).await?;
        self.skipped.extend(result.skipped);
        let turns = result.messages.iter().filter_map(|stored| turn(stored));
        Ok(Segment::build(turns, &BuildOptions::default()))
    }

    /// The blocks whose stored segments lack much, with the number up to which they are to go.
    fn behind(&self) -> impl Iterator<Item = (u64, u64)> {
        (0..).zip(&self.written).filter_map(|(block, written)| {
            let seqs = block_seqs(block);
            let until = self.last_seq.min(*seqs.end());
            let lacks = until.saturating_sub((*written).max(seqs.start() - 1));
            let is_full = until == *seqs.end() && lacks > 0;
            (is_full || lacks >= WRITTEN_AFTER).then_some((block, until))
        })
    }

    /// Writes the segments that lack much.
    async fn save(&mut self, store: &dyn ConversationStore) -> Result<()> {
        // What cannot be read just now would be missing for good.
        if !self.skipped.is_empty() {
            return Ok(());
        }
        let behind: Vec<(u64, u64)> = self.behind().collect();
        for (block, until) in behind {
            let state = store.state().await?;
            if state.last_seq < until || !state.forgotten.without(&self.forgotten).is_empty() {
                return Ok(());
            }
            let segment = self.build(store, *block_seqs(block).start()..=until).await?;
            if !self.skipped.is_empty() {
                return Ok(());
            }
            let bytes = Block { until, segment }.to_bytes();
            let batch = Batch::new(&state).write(DocumentId::Segment(block), bytes);
            store.commit(batch).await?;
            if let Some(written) =
                usize::try_from(block).ok().and_then(|block| self.written.get_mut(block))
            {
                *written = until;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Recall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recall").field("scope", self.store.scope()).finish_non_exhaustive()
    }
}
