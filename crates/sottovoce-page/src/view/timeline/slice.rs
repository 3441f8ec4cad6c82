//! Pages of a conversation: messages before or after a number. Numbers are never reused, so a page stays what it is while others
//! are added, and finding it takes the same time anywhere in a conversation.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sottovoce::store::Finding;
use sottovoce::{ConversationStore, FileConversationStore, Result, StoredMessage};

/// The most numbers that one read covers, where most messages were forgotten.
const WIDEST: u64 = 1 << 14;

/// Some messages in a row.
#[derive(Default)]
pub(crate) struct Slice {
    /// In conversation order.
    pub(crate) messages: Vec<Arc<StoredMessage>>,
    /// The lowest and the highest number of the page.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Whether there are lower and higher numbers.
    pub(crate) has_before: bool,
    pub(crate) has_after: bool,
    /// What could not be read on the way.
    pub(crate) skipped: Vec<Finding>,
}

/// The messages right below a number.
pub(crate) async fn before(store: &FileConversationStore, number: u64, n: usize) -> Result<Slice> {
    let mut slice = Slice::default();
    let mut end = number.saturating_sub(1);
    let mut width = n as u64;
    while slice.messages.len() < n && end > 0 {
        let start = end.saturating_sub(width - 1).max(1);
        let mut read = store.read_seqs(start..=end).await?;
        Finding::add_new(&mut slice.skipped, read.skipped);
        slice.has_after = read.last_seq >= number;
        slice.messages.append(&mut read.messages);
        (end, width) = (start - 1, (width * 4).min(WIDEST));
    }
    slice.messages.sort_by_key(|stored| stored.seq);
    let surplus = slice.messages.len().saturating_sub(n);
    slice.messages.drain(..surplus);
    slice.has_before = surplus > 0 || end > 0;
    Ok(slice.ordered())
}

/// The messages right above a number.
pub(crate) async fn after(store: &FileConversationStore, number: u64, n: usize) -> Result<Slice> {
    let mut slice = Slice { has_before: number > 0, ..Slice::default() };
    let mut start = number.saturating_add(1);
    let mut width = n as u64;
    loop {
        let end = start.saturating_add(width - 1);
        let mut read = store.read_seqs(start..=end).await?;
        Finding::add_new(&mut slice.skipped, read.skipped);
        slice.messages.append(&mut read.messages);
        slice.has_after = read.last_seq > end;
        if slice.messages.len() >= n || !slice.has_after {
            break;
        }
        (start, width) = (end + 1, (width * 4).min(WIDEST));
    }
    slice.messages.sort_by_key(|stored| stored.seq);
    slice.has_after |= slice.messages.len() > n;
    slice.messages.truncate(n);
    Ok(slice.ordered())
}

/// The newest messages.
pub(crate) async fn newest(store: &FileConversationStore, n: usize) -> Result<Slice> {
    let last = store.read_tail(0).await?.last_seq;
    before(store, last.saturating_add(1), n).await
}

/// The messages around a number, and itself.
pub(crate) async fn around(store: &FileConversationStore, number: u64, n: usize) -> Result<Slice> {
    let mut lower = before(store, number, n / 2).await?;
    let upper = after(store, number.saturating_sub(1), n - lower.messages.len()).await?;
    lower.messages.extend(upper.messages);
    lower.has_after = upper.has_after;
    Finding::add_new(&mut lower.skipped, upper.skipped);
    Ok(lower.ordered())
}

/// The number of the first message said at or after a time.
pub(crate) async fn since(store: &FileConversationStore, time: Timestamp) -> Result<Option<u64>> {
    let mut length = SignedDuration::from_mins(1);
    loop {
        let end = time.checked_add(length).unwrap_or(Timestamp::MAX);
        let read = store.read_times(time..end).await?;
        if let Some(first) = read.messages.first() {
            return Ok(Some(first.seq));
        }
        let newest = store.read_tail(1).await?;
        if end == Timestamp::MAX
            || newest.messages.first().is_none_or(|last| last.ordered_at() < end)
        {
            return Ok(None);
        }
        length = length.saturating_mul(8);
    }
}

impl Slice {
    fn ordered(mut self) -> Self {
        let numbers = || self.messages.iter().map(|stored| stored.seq);
        self.first = numbers().min().unwrap_or(0);
        self.last = numbers().max().unwrap_or(0);
        self.messages.sort_by_key(|stored| (stored.ordered_at(), stored.seq));
        self
    }
}
