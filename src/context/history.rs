//! What of a conversation is its history for one prompt, read back from its newest end.

use std::sync::Arc;

use jiff::Timestamp;

use super::ContextRequest;
use crate::error::Result;
use crate::store::{Profile, ReadResult, StoredMessage, Summary};

/// How many messages are looked back at most for those of a thread that is rarely spoken in.
const FARTHEST: usize = 1 << 12;
/// How many are read at first for a window in time.
const FIRST: usize = 64;

/// What belongs to the history: what came before the utterance and after the last clear, in its thread.
pub(super) struct History<'a> {
    request: &'a ContextRequest<'a>,
    pub(super) profile: Arc<Profile>,
    /// The summary that stands in the prompt for what is older.
    summary: Option<&'a Summary>,
}

impl<'a> History<'a> {
    pub(super) async fn of(request: &'a ContextRequest<'a>) -> Result<Self> {
        let (profile, summary) = match request.profile {
            Some(profile) => (Arc::clone(profile), profile.compaction(request.thread)),
            None => (request.store.profile().await?, None),
        };
        Ok(Self { request, profile, summary })
    }

    /// The newest `n`, or all there are.
    pub(super) async fn newest(&self, n: usize) -> Result<ReadResult> {
        let asked = n.saturating_add(usize::from(self.request.before.is_some()));
        let mut reading = self.back(asked, |kept, asked, _| kept >= n || asked >= FARTHEST).await?;
        let surplus = reading.messages.len().saturating_sub(n);
        reading.messages.drain(..surplus);
        Ok(reading)
    }

    /// All after a moment.
    pub(super) async fn since(&self, start: Timestamp) -> Result<ReadResult> {
        let mut reading = self.back(FIRST, |_, _, oldest| oldest.ordered_at() <= start).await?;
        reading.messages.retain(|stored| stored.ordered_at() > start);
        Ok(reading)
    }

    /// Reads back until it is enough, or there is no more.
    async fn back(
        &self,
        mut asked: usize,
        is_enough: impl Fn(usize, usize, &StoredMessage) -> bool,
    ) -> Result<ReadResult> {
        loop {
            let mut reading = self.request.store.read_tail(asked).await?;
            let oldest = reading.messages.first().map(Arc::clone);
            let is_all = reading.messages.len() < asked;
            reading.messages.retain(|stored| self.has(stored));
            let kept = reading.messages.len();
            let is_enough = |oldest: &Arc<StoredMessage>| {
                is_all || self.is_before_all(oldest) || is_enough(kept, asked, oldest)
            };
            if oldest.as_ref().is_none_or(is_enough) {
                return Ok(reading);
            }
            asked = asked.saturating_mul(2).saturating_add(FIRST);
        }
    }

    fn has(&self, stored: &StoredMessage) -> bool {
        self.request.before.is_none_or(|utterance| stored.seq < utterance)
            && stored.message.thread_id.as_deref() == self.request.thread
            && !self.request.now.is_some_and(|now| stored.message.has_expired(now))
            && stored.seq > self.request.after
            && !self.profile.hides(stored)
            && !self.profile.is_pruned(stored.seq)
            && !self.summary.is_some_and(|summary| summary.replaces(stored))
    }

    /// Whether neither it nor anything before it belongs to the history. Of one that another system said before the
    /// last clear that cannot be told: it may lie among what was said since.
    fn is_before_all(&self, stored: &StoredMessage) -> bool {
        let cleared = self.profile.cleared.map_or(0, |cleared| cleared.seq);
        let is_summarized = |summary: &Summary| stored.ordered_at() < summary.until;
        stored.seq <= self.request.after.max(cleared)
            || self.profile.is_unknown
            || self.summary.is_some_and(is_summarized)
    }
}
