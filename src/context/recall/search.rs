//! Exact search: messages that hold words, phrases and filters.

use std::ops::RangeInclusive;
use std::sync::Arc;

use sottovoce_recall::SearchQuery;

use super::block::turn;
use super::index::Recall;
use super::text;
use crate::error::Result;
use crate::message::SEARCH_NOTE;
use crate::store::{ConversationStore, Finding, StoredMessage};

/// The most numbers that one read covers.
const STEP: u64 = 4096;
/// Numbers between two candidates that are read together with them.
const GAP: u64 = 8;
/// The largest distance, in numbers, at which a message's neighbours are looked for.
const FARTHEST: u64 = 1024;

/// The result of a search. `Debug` shows no words.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SearchResults {
    /// The newest matches, newest first, at most as many as asked for.
    pub hits: Vec<Arc<StoredMessage>>,
    /// The number of all matches.
    pub total: u64,
    /// What could not be read on the way.
    pub skipped: Vec<Finding>,
}

/// The messages before and after one.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Neighbours {
    /// Those before it, oldest first.
    pub before: Vec<Arc<StoredMessage>>,
    /// Those after it, oldest first.
    pub after: Vec<Arc<StoredMessage>>,
}

impl Recall {
    /// Finds the messages that hold all that a search asks for, or refer to an artifact whose first 64 KiB of text hold
    /// it, newest first: in one thread, if one is named. Cleared and pruned messages are found; those hidden by the
    /// conversation's limits are not. Only messages that may match are read, and those of roles that are not indexed:
    /// tools and system.
    ///
    /// # Errors
    /// Those of reading the conversation.
    pub async fn search(
        &self,
        query: &SearchQuery,
        thread: Option<&str>,
        limit: usize,
    ) -> Result<SearchResults> {
        let mut found = SearchResults::default();
        if query.is_empty() {
            return Ok(found);
        }
        let (candidates, skipped) = self.candidates(query).await?;
        found.skipped = skipped;
        for seqs in ranges(&candidates).into_iter().rev() {
            let read = self.store().read_seqs(seqs).await?;
            Finding::add_new(&mut found.skipped, read.skipped);
            for stored in read.messages {
                if is_meant(query, thread, &stored) && holds(&**self.store(), query, &stored).await
                {
                    found.hits.push(stored);
                    found.total += 1;
                }
            }
            // Imported messages may be older than those with lower numbers.
            found.hits.sort_by_key(|stored| std::cmp::Reverse((stored.ordered_at(), stored.seq)));
            found.hits.truncate(limit);
        }
        Ok(found)
    }
}

/// Whether a message, or an artifact that it refers to, holds the words of a search.
pub(super) async fn holds(
    store: &dyn ConversationStore,
    query: &SearchQuery,
    stored: &StoredMessage,
) -> bool {
    query.matches(&stored.message.content)
        || match text::whole(store, stored).await {
            Ok(whole) => whole.is_some_and(|whole| query.matches(&whole.text)),
            // Its owner learns of a damaged artifact by opening or verifying it.
            Err(_) => false,
        }
}

/// Whether a message is of a thread, if one is named, passes a search's filters, and does not tell of a search itself.
pub(super) fn is_meant(query: &SearchQuery, thread: Option<&str>, stored: &StoredMessage) -> bool {
    let turn = turn(stored, &stored.message.content);
    (thread.is_none() || turn.thread == thread)
        && !stored.message.metadata.contains_key(SEARCH_NOTE)
        && query.passes(turn.role, turn.speaker, turn.day)
}

/// Few ranges that cover all of these ascending numbers.
pub(super) fn ranges(seqs: &[u64]) -> Vec<RangeInclusive<u64>> {
    let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
    for seq in seqs {
        match ranges.last_mut() {
            Some(last) if seq - last.end() <= GAP && seq - last.start() < STEP => {
                *last = *last.start()..=*seq;
            }
            _ => ranges.push(*seq..=*seq),
        }
    }
    ranges
}

/// The messages right before and after a message in its thread, at most `n` each, within 1,024 numbers.
///
/// # Errors
/// Those of reading the conversation.
pub async fn neighbours(
    store: &dyn ConversationStore,
    of: &StoredMessage,
    n: usize,
) -> Result<Neighbours> {
    if n == 0 {
        return Ok(Neighbours::default());
    }
    let mut reach = (n as u64).saturating_mul(2).clamp(8, FARTHEST);
    loop {
        let first = of.seq.saturating_sub(reach).max(1);
        let read = store.read_seqs(first..=of.seq.saturating_add(reach)).await?;
        let is_all = first == 1 && read.last_seq <= of.seq.saturating_add(reach);
        let place = (of.ordered_at(), of.seq);
        let beside = read.messages.into_iter().filter(|stored| {
            stored.seq != of.seq && stored.message.thread_id == of.message.thread_id
        });
        let (mut before, mut after): (Vec<_>, Vec<_>) =
            beside.partition(|stored| (stored.ordered_at(), stored.seq) < place);
        let is_enough = before.len() >= n && after.len() >= n;
        if is_enough || is_all || reach >= FARTHEST {
            before.drain(..before.len().saturating_sub(n));
            after.truncate(n);
            return Ok(Neighbours { before, after });
        }
        reach = reach.saturating_mul(4).min(FARTHEST);
    }
}
