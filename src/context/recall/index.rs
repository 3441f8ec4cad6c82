//! The index of one conversation: asked, searched, and written back into the store.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use sottovoce_recall::{Asked, Question, Role, SearchQuery, needs_memory};
use tokio::sync::{Mutex, OwnedMutexGuard, Semaphore};
use zeroize::Zeroizing;

use super::block::{Block, is_hit};
use super::loaded::Loaded;
use super::meaning::{self, Meant};
use super::results::{RecallHit, RecallQuery, Recalled, ScoreFloor};
use crate::error::{Error, Result};

use crate::store::record::document::{DocumentId, block_seqs};
use crate::store::record::encoding::LONGEST_RECORD;
use crate::store::record::seq_set::SeqSet;
use crate::store::{Batch, ConversationStore, Finding, StoreState, StoredMessage, blocking};

/// How many hits are looked at first for those that may be seen.
const FIRST: usize = 64;
/// How many of the first hits may change places.
const REORDERED: usize = 5;
/// The most hits that are looked at.
const MOST: usize = 4096;
/// How many messages get their meanings before a question may come between.
const AT_ONCE: usize = 16;
/// Held by the index whose messages get their meanings in the background.
static WORKING: Semaphore = Semaphore::const_new(1);
/// The score that a message must reach in an edition without the encoder: most of the question's words stand in it.
const WORDS_ALONE: f32 = 4.;

/// The index of one conversation. It is made from the stored messages and kept up to date with them.
///
/// The store keeps it in sealed segments, each deleted as soon as one of its messages is forgotten. A segment that is
/// missing, damaged or of another version is made again from the messages.
pub struct Recall {
    store: Arc<dyn ConversationStore>,
    pub(super) loaded: Arc<Mutex<Loaded>>,
    /// The numbers of messages that could not be encoded. Held while messages are encoded, so that none is encoded twice.
    pub(super) failed: Mutex<HashSet<u64>>,
    /// Whether anybody asked for what fits. Until then nothing is encoded.
    pub(super) is_asked: AtomicBool,
    /// Held by the task that waits for its turn to save this index. It saves what comes meanwhile, too.
    waiting: Arc<Mutex<()>>,
}

/// A segment to be written, of a conversation in this state.
struct Unwritten {
    state: StoreState,
    block: u64,
    until: u64,
    /// How many messages have a meaning that the stored segment lacks.
    meanings: u64,
    bytes: Zeroizing<Vec<u8>>,
}

impl Recall {
    /// The index of the conversation in a store. Reads nothing before the first question.
    pub fn new(store: Arc<dyn ConversationStore>) -> Self {
        Self {
            store,
            loaded: Arc::default(),
            failed: Mutex::default(),
            is_asked: AtomicBool::new(false),
            waiting: Arc::default(),
        }
    }

    /// The conversation's store.
    pub fn store(&self) -> &Arc<dyn ConversationStore> {
        &self.store
    }

    /// Finds the messages of the question's thread that fit it best, among those whose number `is_wanted` and that
    /// `may_see` shows. Of the wanted ones it looks at the best 4,096.
    ///
    /// # Errors
    /// Those of reading the conversation.
    pub async fn find(
        &self,
        query: &RecallQuery<'_>,
        is_wanted: impl Fn(u64) -> bool + Send + Sync + 'static,
        may_see: impl Fn(&StoredMessage) -> bool + Send + Sync,
    ) -> Result<Recalled> {
        self.is_asked.store(true, Ordering::Relaxed);
        let copy = |text: &str| Zeroizing::new(text.to_owned());
        let (text, earlier) = (copy(query.text), query.earlier.first().map(|text| copy(text)));
        let meant = blocking(move || {
            Ok(meaning::of_question(&text, earlier.as_deref().map(String::as_str)))
        });
        let meant = meant.await?;
        let meant = meant.as_ref();
        if query.floor == ScoreFloor::Needed
            && meant.is_some_and(|meant| !needs_memory(&meant.vector))
        {
            return Ok(Recalled::default());
        }
        let is_wanted = Arc::new(is_wanted);
        if let Some(recalled) = self.look(false, query, meant, &is_wanted, &may_see).await? {
            return Ok(recalled);
        }
        tracing::warn!(
            "a segment of the search index is of another conversation; all are made again"
        );
        Ok(self.look(true, query, meant, &is_wanted, &may_see).await?.unwrap_or_default())
    }

    /// The index, held until it is dropped. Ranking takes a processor for as long as a second, so it moves to a blocking
    /// thread for that.
    pub(super) async fn hold(&self) -> OwnedMutexGuard<Loaded> {
        Arc::clone(&self.loaded).lock_owned().await
    }

    /// Finds the messages that fit a question best, in an index that is made `anew` if asked for; `None` if a segment is of
    /// other messages than the store's.
    async fn look(
        &self,
        anew: bool,
        query: &RecallQuery<'_>,
        meant: Option<&Meant>,
        is_wanted: &Arc<impl Fn(u64) -> bool + Send + Sync + 'static>,
        may_see: &(impl Fn(&StoredMessage) -> bool + Send + Sync),
    ) -> Result<Option<Recalled>> {
        let mut loaded = self.hold().await;
        if anew {
            loaded.empty(true);
        }
        loaded.refresh(&self.store).await?;
        let Some(years) = loaded.index.years() else { return Ok(Some(Recalled::default())) };
        let mut asked = Asked::new(query.now.clone(), years);
        asked.earlier = query.earlier;
        asked.speaker = query.speaker;
        asked.goes_on = meant.map(|meant| meant.goes_on);
        let question = Question::new(query.text, &asked);
        let question = Arc::new(match meant {
            Some(meant) => question.meaning(&meant.vector),
            None => question,
        });
        let mut recalled = Recalled {
            is_follow_up: question.is_follow_up(),
            skipped: loaded.skipped.clone(),
            ..Recalled::default()
        };
        let floor = match query.floor {
            ScoreFloor::Any => f32::NEG_INFINITY,
            ScoreFloor::Needed if meant.is_none() => WORDS_ALONE,
            ScoreFloor::Needed => f32::NEG_INFINITY,
            ScoreFloor::At(score) => score,
        };
        let mut wanted = FIRST.max(query.limit.saturating_mul(2));
        loop {
            let (asking, is_wanted) = (Arc::clone(&question), Arc::clone(is_wanted));
            let thread = query.thread.map(str::to_owned).map(Zeroizing::new);
            let hits;
            (loaded, hits) = blocking(move || {
                let thread = thread.as_deref().map(String::as_str);
                let hits = loaded.index.rank_in(thread, &asking, &*is_wanted, wanted);
                Ok((loaded, hits))
            })
            .await?;
            let is_all = hits.len() < wanted
                || wanted >= MOST
                || hits.last().is_some_and(|hit| hit.score < floor);
            recalled.hits.clear();
            recalled.orders.clear();
            for hit in hits.into_iter().take_while(|hit| hit.score >= floor) {
                if recalled.hits.len() >= query.limit.max(REORDERED) {
                    break;
                }
                let found = self.store.read_seqs(hit.seq..=hit.seq).await?;
                Finding::add_new(&mut recalled.skipped, found.skipped);
                let Some(stored) = found.messages.into_iter().next() else { continue };
                if !is_hit(&stored, &hit) {
                    return Ok(None);
                }
                let is_of_thread = stored.message.thread_id.as_deref() == query.thread;
                if is_of_thread && may_see(&stored) {
                    let found = RecallHit { stored, hit };
                    let is_order = query.no_orders && found.gives_orders();
                    if is_order { &mut recalled.orders } else { &mut recalled.hits }.push(found);
                }
            }
            if is_all || recalled.hits.len() >= query.limit {
                // What is hidden moves nothing.
                recalled.put_newer_first(&question);
                recalled.hits.truncate(query.limit);
                return Ok(Some(recalled));
            }
            wanted = wanted.saturating_mul(4).min(MOST);
        }
    }

    /// Finds the messages of a thread that fit a question best, without those that are cleared, pruned or expired.
    ///
    /// # Errors
    /// Those of reading the conversation.
    pub async fn find_in(&self, query: &RecallQuery<'_>, thread: Option<&str>) -> Result<Recalled> {
        self.find_where(query, thread, |_| true).await
    }

    /// The same among the messages that `is_meant`.
    pub(super) async fn find_where(
        &self,
        query: &RecallQuery<'_>,
        thread: Option<&str>,
        is_meant: impl Fn(&StoredMessage) -> bool + Send + Sync,
    ) -> Result<Recalled> {
        let profile = self.store.profile().await?;
        let now = query.now.timestamp();
        let wanting = Arc::clone(&profile);
        let may_see = |stored: &StoredMessage| profile.is_context(stored, now) && is_meant(stored);
        let query = RecallQuery { thread, ..query.clone() };
        self.find(&query, move |seq| wanting.may_be_context(seq), may_see).await
    }

    /// The numbers of the messages that may match a search, ascending, and what the index lacks because it could not
    /// be read.
    pub(super) async fn candidates(&self, query: &SearchQuery) -> Result<(Vec<u64>, Vec<Finding>)> {
        let mut loaded = self.hold().await;
        loaded.refresh(&self.store).await?;
        let query = query.clone();
        blocking(move || {
            let mut seqs = loaded.index.search(&query);
            if !matches!(query.from, Some(Role::User | Role::Assistant)) {
                let indexed: SeqSet = loaded.index.seqs().map(|seq| seq..=seq).collect();
                let all = SeqSet::up_to(loaded.last_seq);
                let others = all.without(&indexed).without(&loaded.forgotten);
                seqs.extend(others.ranges().flatten());
            }
            seqs.sort_unstable();
            Ok((seqs, loaded.skipped.clone()))
        })
        .await
    }

    /// The numbers of messages that may hold a word nearly written like this one; `None` if one may hold the word itself.
    pub(super) async fn near(&self, word: &str) -> Result<Option<Vec<u64>>> {
        let mut loaded = self.hold().await;
        loaded.refresh(&self.store).await?;
        let word = Zeroizing::new(word.to_owned());
        blocking(move || Ok(loaded.index.near(&word))).await
    }

    /// Writes segments that are missing or far behind, and all meanings, into the store, and prepares the index for the
    /// next question.
    /// Does nothing before the first question. Call it while nobody waits. If the conversation changes meanwhile, the
    /// rest is written by the next call.
    ///
    /// # Errors
    /// Those of reading and writing the conversation.
    pub async fn save(&self) -> Result<()> {
        self.write(true).await
    }

    /// Writes segments that are far behind, or `all` that lack a meaning.
    async fn write(&self, all: bool) -> Result<()> {
        while let Some(unwritten) = self.next_unwritten(all).await? {
            let Unwritten { state, block, until, meanings, bytes } = unwritten;
            // Nobody's question waits for the disk.
            let batch = Batch::new(&state).write(DocumentId::Segment(block), bytes);
            let committed = self.store.commit(batch).await;
            let mut loaded = self.loaded.lock().await;
            let is_same = loaded.forgotten == state.forgotten;
            let Some(extent) = loaded.extent(block) else { return Ok(()) };
            match committed {
                Ok(_) if is_same => {
                    (extent.written, extent.is_useless) = (until, false);
                    extent.unwritten_meanings = extent.unwritten_meanings.saturating_sub(meanings);
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

    /// [`save`](Self::save) and [`understand`](Self::understand) everything, in a task of its own, for a host whose work
    /// goes on and that keeps the index. It works half of the time, for one index after the other, and ends when the index
    /// is dropped. Nothing is encoded before the first question. A failure is logged.
    pub fn save_in_background(self: &Arc<Self>) {
        let Ok(waiting) = Arc::clone(&self.waiting).try_lock_owned() else { return };
        let kept = Arc::downgrade(self);
        tokio::spawn(async move {
            let (mut waiting, mut understood) = (Some(waiting), 0);
            while let Some(recall) = kept.upgrade() {
                let Ok(_working) = WORKING.acquire().await else { return };
                drop(waiting.take());
                let begun = Instant::now();
                match recall.go_on(understood).await {
                    Ok(0) | Err(Error::ShuttingDown) => return,
                    Ok(more) => understood += more,
                    Err(error) => {
                        tracing::warn!(%error, "could not save the index of what was said");
                        return;
                    }
                }
                drop(recall);
                // A model may need the processor, too.
                tokio::time::sleep(begun.elapsed()).await;
            }
        });
    }

    /// Saves the index, and gives some messages their meanings, after so many others. Returns how many; 0 if none is left.
    /// Of several tasks, one goes on.
    async fn go_on(&self, before: usize) -> Result<usize> {
        self.write(false).await?;
        let is_free = self.failed.try_lock().is_ok();
        if !is_free || !self.is_asked.load(Ordering::Relaxed) {
            return Ok(0);
        }
        let understood = self.understand(AT_ONCE).await?;
        // After a turn with its two messages a segment is not written again.
        self.write(understood == 0 && before > AT_ONCE).await?;
        Ok(understood)
    }

    /// The next segment to write.
    async fn next_unwritten(&self, all: bool) -> Result<Option<Unwritten>> {
        let mut loaded = self.hold().await;
        if loaded.last_seq == 0 {
            return Ok(None);
        }
        let state = loaded.refresh(&self.store).await?;
        blocking(move || Ok(loaded.pack(state, all))).await
    }
}

impl Loaded {
    /// Makes the next segment to write, and prepares the index for the next question.
    fn pack(&mut self, state: StoreState, all: bool) -> Option<Unwritten> {
        let mut unwritten = None;
        while let Some((block, until)) = self.behind(all) {
            // Segments stand before the turns that are in none, so the blocks before this one need theirs.
            for earlier in 0..block {
                self.index.pack(earlier, block_seqs(earlier));
            }
            let Some(extent) = self.extent(block) else { break };
            let (artifacts, meanings) = (extent.artifacts.clone(), extent.unwritten_meanings);
            let Some(segment) = self.index.pack(block, block_seqs(block)) else { break };
            if meanings > 0 && segment.is_empty() {
                // All of the block was forgotten.
                self.extent(block)?.unwritten_meanings = 0;
                continue;
            }
            let bytes = Block::bytes(until, &artifacts, segment);
            if bytes.len() <= LONGEST_RECORD {
                unwritten = Some(Unwritten { state, block, until, meanings, bytes });
                break;
            }
            // It could not be read again, so it is made at each start.
            if let Some(extent) = self.extent(block) {
                extent.is_held_back = true;
            }
        }
        self.index.refresh();
        unwritten
    }
}

impl fmt::Debug for Recall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recall").field("scope", self.store.scope()).finish_non_exhaustive()
    }
}
