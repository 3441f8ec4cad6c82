//! The index of one conversation: loaded from the store's segments, brought up to date, and written back.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use sottovoce_recall::{
    Asked, BuildOptions, Index, Question, Role, SearchQuery, Segment, UtteranceKind,
};
use tokio::sync::Mutex;
use zeroize::Zeroizing;

use super::block::{Block, is_hit, is_indexed, turn};
use super::results::{RecallHit, RecallQuery, Recalled, ScoreFloor};
use super::text;
use crate::error::{Error, Result};
use crate::message::ChatRole;
use crate::store::record::document::{BLOCK, DocumentId, block_of, block_seqs};
use crate::store::record::encoding::LONGEST_RECORD;
use crate::store::record::seq_set::SeqSet;
use crate::store::{
    Batch, ConversationStore, Finding, Profile, ReadQuery, ReadResult, StoreState, StoredMessage,
    blocking,
};

/// A block's segment is written again once it lacks this many numbers.
const WRITTEN_AFTER: u64 = 256;
/// How many segments are read while one is taken into the index.
const AHEAD: usize = 4;
/// How many hits are looked at first for those that may be seen.
const FIRST: usize = 64;
/// How many of the first hits may change places.
const REORDERED: usize = 5;
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
    /// The store's revision when the artifacts were looked at.
    revision: u64,
    blocks: Vec<Extent>,
    /// What could not be read.
    skipped: Vec<Finding>,
    /// Whether the stored segments are not to be read.
    is_distrustful: bool,
}

/// What is known of a block.
#[derive(Clone, Default)]
struct Extent {
    /// The artifacts whose text is in it.
    artifacts: BTreeSet<String>,
    /// The number up to which its stored segment goes; 0 without one.
    written: u64,
    /// Whether the stored one is not believed. It may hold words that were forgotten.
    is_useless: bool,
    /// Whether no segment is to be written: it would lack a message that cannot be read just now, or the stored one
    /// cannot be replaced.
    is_held_back: bool,
}

/// A segment to be written, of a conversation in this state.
struct Unwritten {
    state: StoreState,
    block: u64,
    until: u64,
    bytes: Zeroizing<Vec<u8>>,
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

    /// Finds the messages that fit a question best, among those whose number `is_wanted` and that `may_see` shows. Of
    /// the wanted ones it looks at the best 4,096.
    ///
    /// # Errors
    /// Those of reading the conversation.
    pub async fn find(
        &self,
        query: &RecallQuery<'_>,
        is_wanted: impl Fn(u64) -> bool + Send + Sync,
        may_see: impl Fn(&StoredMessage) -> bool + Send + Sync,
    ) -> Result<Recalled> {
        let mut loaded = self.loaded.lock().await;
        if let Some(recalled) = self.look(&mut loaded, query, &is_wanted, &may_see).await? {
            return Ok(recalled);
        }
        tracing::warn!(
            "a segment of the search index is of another conversation; all are made again"
        );
        *loaded = Loaded { is_distrustful: true, ..Loaded::default() };
        Ok(self.look(&mut loaded, query, &is_wanted, &may_see).await?.unwrap_or_default())
    }

    /// Finds the messages that fit a question best; `None` if a segment is of other messages than the store's.
    async fn look(
        &self,
        loaded: &mut Loaded,
        query: &RecallQuery<'_>,
        is_wanted: &(impl Fn(u64) -> bool + Send + Sync),
        may_see: &(impl Fn(&StoredMessage) -> bool + Send + Sync),
    ) -> Result<Option<Recalled>> {
        loaded.refresh(&self.store).await?;
        let Some(years) = loaded.index.years() else { return Ok(Some(Recalled::default())) };
        let mut asked = Asked::new(query.now.clone(), years);
        asked.earlier = query.earlier;
        asked.speaker = query.speaker;
        let question = Question::new(query.text, &asked);
        let floor = match query.floor {
            ScoreFloor::Any => f32::NEG_INFINITY,
            ScoreFloor::OfKind => loaded.index.min_score(&question),
            ScoreFloor::At(score) => score,
        };
        let mut recalled = Recalled {
            is_follow_up: question.is_follow_up(),
            skipped: loaded.skipped.clone(),
            ..Recalled::default()
        };
        if floor == f32::INFINITY {
            return Ok(Some(recalled));
        }
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
        // What resembles a command is mostly a command, so that looking further finds no more.
        let most = if is_command(&question) { wanted } else { MOST };
        loop {
            let hits = loaded.index.rank(&question, is_wanted, wanted);
            let is_all = hits.len() < wanted
                || wanted >= most
                || hits.last().is_some_and(|hit| hit.score < floor);
            recalled.hits.clear();
            for hit in hits.into_iter().take_while(|hit| hit.score >= floor) {
                if recalled.hits.len() >= query.limit.max(REORDERED) {
                    break;
                }
                let found = self.store.read_seqs(hit.seq..=hit.seq).await?;
                recalled.skip(found.skipped);
                let Some(stored) = found.messages.into_iter().next() else { continue };
                if !is_hit(&stored, &hit) {
                    return Ok(None);
                }
                if may_see(&stored) && !is_repeated(&stored) {
                    recalled.hits.push(RecallHit { stored, hit });
                }
            }
            if is_all || recalled.hits.len() >= query.limit {
                // What is hidden moves nothing.
                recalled.put_newer_first(&question);
                recalled.hits.truncate(query.limit);
                return Ok(Some(recalled));
            }
            wanted = wanted.saturating_mul(4).min(most);
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
            stored.message.thread_id.as_deref() == thread && profile.is_context(stored, now)
        };
        self.find(query, |seq| profile.may_be_context(seq), may_see).await
    }

    /// The numbers of the messages that may match a search, ascending, and what the index lacks because it could not
    /// be read.
    pub(super) async fn candidates(&self, query: &SearchQuery) -> Result<(Vec<u64>, Vec<Finding>)> {
        let mut loaded = self.loaded.lock().await;
        loaded.refresh(&self.store).await?;
        let mut seqs = loaded.index.search(query);
        if !matches!(query.from, Some(Role::User | Role::Assistant)) {
            let indexed: SeqSet = loaded.index.seqs().map(|seq| seq..=seq).collect();
            let all: SeqSet = std::iter::once(1..=loaded.last_seq).collect();
            let others = all.without(&indexed).without(&loaded.forgotten);
            seqs.extend(others.ranges().flatten());
        }
        seqs.sort_unstable();
        Ok((seqs, loaded.skipped.clone()))
    }

    /// Writes segments that are missing or far behind into the store, and prepares the index for the next question.
    /// Does nothing before the first question. Call it while nobody waits. If the conversation changes meanwhile, the
    /// rest is written by the next call.
    ///
    /// # Errors
    /// Those of reading and writing the conversation.
    pub async fn save(&self) -> Result<()> {
        while let Some(unwritten) = self.next_unwritten().await? {
            let Unwritten { state, block, until, bytes } = unwritten;
            // Nobody's question waits for the disk.
            let batch = Batch::new(&state).write(DocumentId::Segment(block), bytes);
            let committed = self.store.commit(batch).await;
            let mut loaded = self.loaded.lock().await;
            let is_same = loaded.forgotten == state.forgotten;
            let Some(extent) = loaded.extent(block) else { return Ok(()) };
            match committed {
                Ok(_) if is_same => {
                    (extent.written, extent.is_useless) = (until, false);
                }
                Ok(_) | Err(Error::Conflict) => return Ok(()),
                Err(error) => {
                    extent.is_held_back = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// The next segment to write.
    async fn next_unwritten(&self) -> Result<Option<Unwritten>> {
        let mut loaded = self.loaded.lock().await;
        if loaded.last_seq == 0 {
            return Ok(None);
        }
        let state = loaded.refresh(&self.store).await?;
        let mut unwritten = None;
        while let Some((block, until)) = loaded.behind() {
            // Segments stand before the turns that are in none, so the blocks before this one need theirs.
            for earlier in 0..block {
                loaded.index.pack(earlier, block_seqs(earlier));
            }
            let Some(extent) = loaded.extent(block) else { break };
            let artifacts = extent.artifacts.clone();
            let Some(segment) = loaded.index.pack(block, block_seqs(block)) else { break };
            let bytes = Block::bytes(until, &artifacts, segment);
            if bytes.len() <= LONGEST_RECORD {
                unwritten = Some(Unwritten { state, block, until, bytes });
                break;
            }
            // It could not be read again, so it is made at each start.
            if let Some(extent) = loaded.extent(block) {
                extent.is_held_back = true;
            }
        }
        loaded.index.refresh();
        Ok(unwritten)
    }
}

impl Loaded {
    /// Brings the index up to date with the store.
    async fn refresh(&mut self, store: &Arc<dyn ConversationStore>) -> Result<StoreState> {
        let state = store.state().await?;
        if state.last_seq < self.last_seq || !self.forgotten.without(&state.forgotten).is_empty() {
            // Another conversation has the place of this one, or an older copy of it.
            *self = Self::default();
        }
        if state.last_seq == 0 {
            return Ok(state);
        }
        if state.revision != self.revision || self.last_seq == 0 {
            let profile = store.profile().await?;
            let mut artifacts = self.blocks.iter().flat_map(|extent| &extent.artifacts);
            if artifacts.any(|id| profile.has_deleted_artifact(id)) {
                *self = Self::default();
            }
            self.forget(&state);
            if self.last_seq == 0 {
                self.load(store, &state, &profile).await?;
            }
            self.revision = state.revision;
        }
        self.forget(&state);
        self.add(&**store, &state).await?;
        Ok(state)
    }

    /// Takes out what was forgotten.
    fn forget(&mut self, state: &StoreState) {
        let newly = state.forgotten.without(&self.forgotten);
        if !newly.is_empty() && self.last_seq > 0 {
            self.index.retain(|seq| !newly.contains(seq));
            for (block, extent) in (0..).zip(&mut self.blocks) {
                if newly.intersects(&block_seqs(block)) {
                    extent.written = 0;
                }
            }
        }
        self.forgotten.clone_from(&state.forgotten);
    }

    /// Loads the stored segments. What they do not cover is made from the messages.
    async fn load(
        &mut self,
        store: &Arc<dyn ConversationStore>,
        state: &StoreState,
        profile: &Arc<Profile>,
    ) -> Result<()> {
        let known = Arc::new(state.clone());
        let mut is_whole = true;
        let mut blocks = 0..=block_of(state.last_seq);
        let mut ahead = VecDeque::with_capacity(AHEAD);
        loop {
            while ahead.len() < AHEAD
                && let Some(block) = blocks.next()
            {
                let reading = read_block(
                    Arc::clone(store),
                    block,
                    Arc::clone(&known),
                    Arc::clone(profile),
                    self.is_distrustful,
                );
                ahead.push_back((block, tokio::spawn(reading)));
            }
            let Some((block, reading)) = ahead.pop_front() else { break };
            let (stored, is_useless) = reading.await.unwrap_or_default();
            let (written, artifacts) = match &stored {
                Some(Block { until, artifacts, .. }) => (*until, artifacts.clone()),
                None => (0, BTreeSet::new()),
            };
            self.blocks.push(Extent { artifacts, written, is_useless, is_held_back: false });
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
                    let rest = self.build(&**store, after + 1..=end).await?;
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
        let blocks = usize::try_from(block_of(state.last_seq)).unwrap_or(0) + 1;
        self.blocks.resize_with(blocks.max(self.blocks.len()), Extent::default);
        while self.last_seq < state.last_seq {
            let first = self.last_seq.saturating_add(1);
            let last = state.last_seq.min(self.last_seq.saturating_add(BLOCK));
            let result = read(store, first..=last).await?;
            for stored in result.messages.iter().filter(|stored| is_indexed(stored)) {
                let whole = self.whole(store, stored).await;
                let text = whole.as_ref().map_or(&stored.message.content, |whole| whole);
                self.index.push(&turn(stored, text));
            }
            self.skip(result.skipped, &(first..=last));
            self.last_seq = last;
        }
        Ok(())
    }

    /// The segment of the messages with these numbers.
    async fn build(
        &mut self,
        store: &dyn ConversationStore,
        seqs: RangeInclusive<u64>,
    ) -> Result<Segment> {
        let result = read(store, seqs.clone()).await?;
        self.skip(result.skipped, &seqs);
        let mut texts = Vec::new();
        for stored in result.messages.iter().filter(|stored| is_indexed(stored)) {
            texts.push((stored, self.whole(store, stored).await));
        }
        let turns = texts.iter().map(|(stored, whole)| {
            turn(stored, whole.as_ref().map_or(&stored.message.content, |whole| whole))
        });
        Ok(Segment::build(turns, &BuildOptions::default()))
    }

    /// The text of a message with that of its artifacts, if it refers to any.
    async fn whole(
        &mut self,
        store: &dyn ConversationStore,
        stored: &StoredMessage,
    ) -> Option<Zeroizing<String>> {
        match text::whole(store, stored).await {
            Ok(whole) => {
                let whole = whole?;
                self.extent(block_of(stored.seq))?.artifacts.extend(whole.artifacts);
                Some(whole.text)
            }
            Err(error) => {
                tracing::warn!(%error, "the search index lacks an artifact");
                self.extent(block_of(stored.seq))?.is_held_back = true;
                None
            }
        }
    }

    /// Notes what could not be read among these numbers. A segment without what another key or a newer program can
    /// read would lack it for good.
    fn skip(&mut self, findings: Vec<Finding>, seqs: &RangeInclusive<u64>) {
        if findings.iter().any(|finding| finding.kind.may_open_later()) {
            for block in block_of(*seqs.start())..=block_of(*seqs.end()) {
                if let Some(extent) = self.extent(block) {
                    extent.is_held_back = true;
                }
            }
        }
        for finding in findings {
            if !self.skipped.contains(&finding) {
                self.skipped.push(finding);
            }
        }
    }

    fn extent(&mut self, block: u64) -> Option<&mut Extent> {
        self.blocks.get_mut(usize::try_from(block).ok()?)
    }

    /// The first block whose stored segment lacks much, with the number up to which it is to go.
    fn behind(&self) -> Option<(u64, u64)> {
        (0..).zip(&self.blocks).filter(|(_, extent)| !extent.is_held_back).find_map(
            |(block, extent)| {
                let seqs = block_seqs(block);
                let until = self.last_seq.min(*seqs.end());
                let lacks = until.saturating_sub(extent.written.max(seqs.start() - 1));
                let is_full = until == *seqs.end() && lacks > 0;
                let is_due = is_full || lacks >= WRITTEN_AFTER || extent.is_useless;
                is_due.then_some((block, until))
            },
        )
    }
}

/// The stored segment of a block, if it is believed, and whether there is one that is not.
async fn read_block(
    store: Arc<dyn ConversationStore>,
    block: u64,
    state: Arc<StoreState>,
    profile: Arc<Profile>,
    is_distrustful: bool,
) -> (Option<Block>, bool) {
    let read = match store.document(&DocumentId::Segment(block)).await {
        Ok(None) => return (None, false),
        Ok(Some(_)) if is_distrustful => return (None, true),
        Ok(Some(bytes)) => {
            blocking(move || Ok(Block::from_bytes(block, &bytes, &state, &profile))).await
        }
        Err(error) => Err(error),
    };
    match read {
        Ok(Some(read)) => return (Some(read), false),
        Ok(None) => tracing::warn!(block, "a segment of the search index is made again"),
        Err(ref error) => {
            tracing::warn!(%error, block, "a segment of the search index is made again");
        }
    }
    (None, matches!(read, Ok(_) | Err(Error::Damaged { .. })))
}

/// The messages with these numbers, by number. What is imported has earlier times, and by these the index would depend
/// on when it was made.
async fn read(store: &dyn ConversationStore, seqs: RangeInclusive<u64>) -> Result<ReadResult> {
    let mut result = store.read(ReadQuery::Seqs(seqs)).await?;
    result.messages.sort_unstable_by_key(|stored| stored.seq);
    Ok(result)
}

impl fmt::Debug for Recall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recall").field("scope", self.store.scope()).finish_non_exhaustive()
    }
}
