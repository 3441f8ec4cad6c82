//! Looking for words in what a conversation has stored.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use jiff::Timestamp;
use zeroize::{Zeroize, Zeroizing};

use crate::error::Result;
use crate::store::{ConversationStore, Finding, StoredMessage};

/// The metadata of a message that tells of a search. Its words are those that were looked for, so that no search finds
/// it.
pub const SEARCH_NOTE: &str = "searchFor";

/// How many numbers are looked through at once.
const STEP: u64 = 4096;
/// How many times its bytes a text may take once letter case is gone.
const GROWTH: usize = 3;

/// What a search has found.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Found {
    /// The messages, the newest first; no more than were asked for.
    pub messages: Vec<Arc<StoredMessage>>,
    /// How many there are in all.
    pub total: u64,
    /// What was passed over on the way.
    pub skipped: Vec<Finding>,
}

/// Words to look for. A text has them if each of them stands somewhere in it, in whatever letter case, even within a
/// longer word.
pub struct SearchWords(Zeroizing<Vec<String>>);

impl SearchWords {
    /// The words of a text, by the spaces between them.
    pub fn new(words: &str) -> Self {
        Self(Zeroizing::new(
            words.split_whitespace().map(|word| folded(word).to_string()).collect(),
        ))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of them are in a text. Where there are none, none is in it.
    pub fn are_in(&self, text: &str) -> bool {
        self.are_in_with(text, &mut Zeroizing::default())
    }

    /// The same in memory that is used again.
    fn are_in_with(&self, text: &str, memory: &mut Zeroizing<String>) -> bool {
        fold(text, memory);
        !self.is_empty() && self.0.iter().all(|word| memory.contains(word.as_str()))
    }
}

impl std::fmt::Debug for SearchWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SearchWords").field(&self.0.len()).finish()
    }
}

/// The text without letter case. Upwards first: only so are `ß` and `SS`, or the two small sigmas, one.
fn fold(text: &str, into: &mut Zeroizing<String>) {
    into.zeroize();
    // It never grows: what it held would stay behind unwiped.
    if into.capacity() < text.len() * GROWTH {
        *into = Zeroizing::new(String::with_capacity(text.len() * GROWTH));
    }
    into.extend(text.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase));
}

fn folded(text: &str) -> Zeroizing<String> {
    let mut folded = Zeroizing::default();
    fold(text, &mut folded);
    folded
}

/// The messages that have all the words, the newest `limit` of them; of a thread, if one is named. What is hidden is not
/// found, but what was cleared or taken out of the context is. Reads every message, some thousand at a time from the
/// newest number back, and holds on to no more of them than that and the limit.
///
/// # Errors
/// What keeps the conversation from being read.
pub async fn search(
    store: &dyn ConversationStore,
    words: &str,
    thread: Option<&str>,
    limit: usize,
) -> Result<Found> {
    let words = SearchWords::new(words);
    let mut found = Found::default();
    if words.is_empty() {
        return Ok(found);
    }
    let mut newest = Newest { limit, heap: BinaryHeap::new() };
    let mut memory = Zeroizing::default();
    let mut end = store.read_tail(0).await?.last_seq;
    while end > 0 {
        let first = end.saturating_sub(STEP - 1).max(1);
        let reading = store.read_seqs(first..=end).await?;
        for finding in reading.skipped {
            if !found.skipped.contains(&finding) {
                found.skipped.push(finding);
            }
        }
        for stored in reading.messages {
            let message = &stored.message;
            let is_meant = thread.is_none() || message.thread_id.as_deref() == thread;
            let is_said = is_meant && !message.metadata.contains_key(SEARCH_NOTE);
            if is_said && words.are_in_with(&message.content, &mut memory) {
                found.total += 1;
                newest.take(stored);
            }
        }
        end = first - 1;
    }
    found.messages = newest.in_order();
    Ok(found)
}

/// The newest so many. Numbers do not go with time where messages were imported, so that the last of them may be found
/// anywhere.
struct Newest {
    limit: usize,
    heap: BinaryHeap<Reverse<Dated>>,
}

struct Dated(Arc<StoredMessage>);

impl Dated {
    fn place(&self) -> (Timestamp, u64) {
        (self.0.ordered_at(), self.0.seq)
    }
}

impl PartialEq for Dated {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Dated {}

impl PartialOrd for Dated {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Dated {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.place().cmp(&other.place())
    }
}

impl Newest {
    fn take(&mut self, stored: Arc<StoredMessage>) {
        self.heap.push(Reverse(Dated(stored)));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    fn in_order(self) -> Vec<Arc<StoredMessage>> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(Dated(stored))| stored).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_any_letter_case_and_order_and_within_longer_ones() {
        for (words, text) in [
            ("milk bread", "Bread and MILK"),
            ("STRASSE", "Die Straße"),
            ("straße", "DIE STRASSE"),
            ("ΟΔΟΣ", "οδοστρωμα"),
            ("οδος", "ΟΔΟΣ"),
            ("ÉCLAIR", "éclairs"),
            ("天气", "明天的天气怎么样"),
            ("ПОГОДА", "какая погода?"),
            ("  milk\t", "buttermilk"),
        ] {
            assert!(SearchWords::new(words).are_in(text), "{words} in {text}");
        }
        for (words, text) in
            [("milk tea", "milk and bread"), ("", "milk"), (" \n", ""), ("milks", "milk")]
        {
            assert!(!SearchWords::new(words).are_in(text), "{words} not in {text}");
        }
    }

    #[test]
    fn a_text_without_letter_case_never_outgrows_its_memory() {
        for c in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
            let folded = folded(&c.to_string());
            assert!(folded.len() <= c.len_utf8() * GROWTH, "{c:?}");
        }
    }

    #[test]
    fn words_that_are_looked_for_are_in_no_debug_output() {
        assert_eq!(format!("{:?}", SearchWords::new("canary bird")), "SearchWords(2)");
    }
}
