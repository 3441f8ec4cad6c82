//! What is in memory of an index: loaded from the store's segments, and brought up to date with the messages.

use std::collections::{BTreeSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

use sottovoce_recall::{BuildOptions, Index, Segment};
use zeroize::Zeroizing;

use super::block::{Block, is_indexed, turn};
use super::text;
use crate::error::{Error, Result};
use crate::store::record::document::{BLOCK, DocumentId, block_of, block_seqs};
use crate::store::record::seq_set::SeqSet;
use crate::store::{
    ConversationStore, Finding, Profile, ReadQuery, ReadResult, StoreState, StoredMessage, blocking,
};

/// A block's segment is written again once it lacks this many numbers.
const WRITTEN_AFTER: u64 = 256;
/// How many segments are read while one is taken into the index.
const AHEAD: usize = 4;

/// What is in memory.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) index: Index,
    /// Every message up to this number is in the index.
    pub(super) last_seq: u64,
    pub(super) forgotten: SeqSet,
    /// The store's revision when the artifacts were looked at.
    revision: u64,
    blocks: Vec<Extent>,
    /// What could not be read.
    pub(super) skipped: Vec<Finding>,
    /// Whether the stored segments are not to be read.
    is_distrustful: bool,
    /// How often anything was taken out. What was read before may tell of it.
    pub(super) removals: u64,
}

/// What is known of a block.
#[derive(Clone, Default)]
pub(super) struct Extent {
    /// The artifacts whose text is in it.
    pub(super) artifacts: BTreeSet<String>,
    /// The number up to which its stored segment goes; 0 without one.
    pub(super) written: u64,
    /// How many messages have a meaning that the stored segment lacks.
    pub(super) unwritten_meanings: u64,
    /// Whether the stored one is not believed. It may hold words that were forgotten.
    pub(super) is_useless: bool,
    /// Whether no segment is to be written: it would lack a message that cannot be read just now, or the stored one
    /// cannot be replaced.
    pub(super) is_held_back: bool,
}

impl Loaded {
    /// Empties the index. A distrustful one does not read the stored segments.
    pub(super) fn empty(&mut self, is_distrustful: bool) {
        *self = Self { is_distrustful, removals: self.removals + 1, ..Self::default() };
    }

    /// Brings the index up to date with the store.
    pub(super) async fn refresh(
        &mut self,
        store: &Arc<dyn ConversationStore>,
    ) -> Result<StoreState> {
        let state = store.state().await?;
        if state.last_seq < self.last_seq || !self.forgotten.without(&state.forgotten).is_empty() {
            // Another conversation has the place of this one, or an older copy of it.
            self.empty(false);
        }
        if state.last_seq == 0 {
            return Ok(state);
        }
        if state.revision != self.revision || self.last_seq == 0 {
            let profile = store.profile().await?;
            let mut artifacts = self.blocks.iter().flat_map(|extent| &extent.artifacts);
            if artifacts.any(|id| profile.has_deleted_artifact(id)) {
                self.empty(false);
            }
            if self.last_seq == 0 {
                // Taken over as a whole, so that a caller who stops waiting leaves no half of it.
                let (is_distrustful, removals) = (self.is_distrustful, self.removals);
                let mut loaded = Self { is_distrustful, removals, ..Self::default() };
                loaded.load(store, &state, &profile).await?;
                *self = loaded;
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
            self.removals += 1;
            for (block, extent) in (0..).zip(&mut self.blocks) {
                if newly.intersects(&block_seqs(block)) {
                    extent.written = 0;
                    // Its segment is deleted; the meanings that are left are kept by the next one.
                    extent.unwritten_meanings += 1;
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
        self.forgotten.clone_from(&state.forgotten);
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
            self.blocks.push(Extent { artifacts, written, is_useless, ..Extent::default() });
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
            self.skip(result.skipped, &(first..=last));
            for stored in result.messages.iter().filter(|stored| is_indexed(stored)) {
                let whole = self.whole(store, stored).await;
                let text = whole.as_ref().map_or(&stored.message.content, |whole| whole);
                self.index.push(&turn(stored, text));
                // So that no message is taken in twice if the caller stops waiting.
                self.last_seq = stored.seq;
            }
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
        for stored in result.messages.into_iter().filter(|stored| is_indexed(stored)) {
            let whole = self.whole(store, &stored).await;
            texts.push((stored, whole));
        }
        blocking(move || {
            let turns = texts.iter().map(|(stored, whole)| {
                turn(stored, whole.as_ref().map_or(&stored.message.content, |whole| whole))
            });
            Ok(Segment::build(turns, &BuildOptions::default()))
        })
        .await
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
        Finding::add_new(&mut self.skipped, findings);
    }

    pub(super) fn extent(&mut self, block: u64) -> Option<&mut Extent> {
        self.blocks.get_mut(usize::try_from(block).ok()?)
    }

    /// The first block whose stored segment lacks many messages or meanings, or any meaning if `all` are to be written, with
    /// the number up to which it is to go.
    pub(super) fn behind(&self, all: bool) -> Option<(u64, u64)> {
        (0..).zip(&self.blocks).filter(|(_, extent)| !extent.is_held_back).find_map(
            |(block, extent)| {
                let seqs = block_seqs(block);
                let until = self.last_seq.min(*seqs.end());
                let lacks = until.saturating_sub(extent.written.max(seqs.start() - 1));
                let is_full = until == *seqs.end() && lacks > 0;
                let meanings = extent.unwritten_meanings;
                let is_due = is_full
                    || lacks.max(meanings) >= WRITTEN_AFTER
                    || (all && meanings > 0)
                    || extent.is_useless;
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
