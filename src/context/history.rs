//! The history of a conversation for one prompt, read backwards from its newest message.

use std::sync::Arc;

use jiff::Timestamp;

use super::ContextRequest;
use crate::error::Result;
use crate::store::{Profile, ReadResult, StoredMessage, Summary};

/// How many messages the first read of a time window takes.
const FIRST: usize = 64;

/// So many messages are read at most: all of them may be such as the history leaves out.
const FARTHEST: usize = 1 << 14;

/// Decides what belongs to the history: the thread's messages before the utterance and after the last clear.
pub(super) struct History<'a> {
    request: &'a ContextRequest<'a>,
    pub(super) profile: Arc<Profile>,
    /// The summary in the prompt that replaces older messages.
    summary: Option<&'a Summary>,
}

impl<'a> History<'a> {
    pub(super) async fn of(request: &'a ContextRequest<'a>) -> Result<Self> {
        let (profile, summary) = match request.profile {
            Some(profile) => (Arc::clone(profile), profile.summary(request.thread)),
            None => (request.store.profile().await?, None),
        };
        Ok(Self { request, profile, summary })
    }

    /// The newest `n` messages, or all if there are fewer.
    pub(super) async fn newest(&self, n: usize) -> Result<ReadResult> {
        let asked = n.saturating_add(usize::from(self.request.before.is_some()));
        let mut reading = self.back(asked, |kept, _| kept >= n).await?;
        let surplus = reading.messages.len().saturating_sub(n);
        reading.messages.drain(..surplus);
        Ok(reading)
    }

    /// All messages since a time.
    pub(super) async fn since(&self, start: Timestamp) -> Result<ReadResult> {
        let mut reading = self.back(FIRST, |_, oldest| oldest.ordered_at() <= start).await?;
        reading.messages.retain(|stored| stored.ordered_at() > start);
        Ok(reading)
    }

    /// Reads backwards until there are enough messages, or no more.
    async fn back(
        &self,
        mut asked: usize,
        is_enough: impl Fn(usize, &StoredMessage) -> bool,
    ) -> Result<ReadResult> {
        loop {
            let mut reading = self.request.store.read_thread(self.request.thread, asked).await?;
            let oldest = reading.messages.first().map(Arc::clone);
            let is_all = reading.messages.len() < asked;
            reading.messages.retain(|stored| self.has(stored));
            let kept = reading.messages.len();
            let is_enough = |oldest: &Arc<StoredMessage>| {
                is_all || self.is_before_all(oldest) || is_enough(kept, oldest)
            };
            if asked >= FARTHEST || oldest.as_ref().is_none_or(is_enough) {
                return Ok(reading);
            }
            asked = asked.saturating_mul(2).saturating_add(FIRST);
        }
    }

    fn has(&self, stored: &StoredMessage) -> bool {
        self.request.before.is_none_or(|utterance| stored.seq < utterance)
            && stored.message.thread_id.as_deref() == self.request.thread
            && stored.message.comes_unasked()
            && !self.request.now.is_some_and(|now| stored.message.has_expired(now))
            && stored.seq > self.request.after
            && !self.profile.hides(stored)
            && !self.profile.is_pruned(stored.seq)
            && !self.summary.is_some_and(|summary| summary.replaces(stored))
    }

    /// Whether neither this message nor any before it belongs to the history. For imported messages from before the
    /// last clear the answer is no, because they may lie among later ones.
    fn is_before_all(&self, stored: &StoredMessage) -> bool {
        let cleared = self.profile.cleared.map_or(0, |cleared| cleared.seq);
        let is_summarized = |summary: &Summary| stored.ordered_at() < summary.until;
        stored.seq <= self.request.after.max(cleared)
            || self.profile.is_unknown
            || self.summary.is_some_and(is_summarized)
    }
}
