//! Keeping messages out of the context that the source had cleared, and no others.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::error::Result;
use crate::import::ImportedMessage;
use crate::import::known::STRETCH;
use crate::store::record::import_digest::Origin;
use crate::store::{ConversationStore, FileConversationStore, StoredMessage};

/// Messages of an import that are to be no context.
#[derive(Debug, Default)]
pub(super) struct ClearedMessages {
    origins: HashSet<Origin>,
    /// Up to when the source was cleared: the time of the latest of them, or later.
    at: Option<Timestamp>,
}

/// What is still to be done once the messages are stored.
pub(super) struct Begun {
    /// Those that no clear marker hides.
    rest: HashSet<Origin>,
}

impl ClearedMessages {
    /// Those of a source that was cleared up to a moment.
    pub(super) fn until(at: Timestamp, messages: &[ImportedMessage]) -> Self {
        let cleared = messages.iter().filter(|imported| imported.message.timestamp <= at);
        let origins: HashSet<_> = cleared.map(ImportedMessage::origin).collect();
        Self { at: Some(at).filter(|_| !origins.is_empty()), origins }
    }

    pub(super) fn add(&mut self, imported: &ImportedMessage) {
        self.origins.insert(imported.origin());
        self.at = self.at.max(Some(imported.message.timestamp));
    }

    /// Before the messages come: moves the clear marker, so that none of them is context in between. Not where that would
    /// hide any other message, or withdraw a summary.
    pub(super) async fn begin(
        self,
        store: &FileConversationStore,
        coming: &[ImportedMessage],
    ) -> Result<Begun> {
        let Some(at) = self.at else { return Ok(Begun { rest: HashSet::new() }) };
        let profile = store.profile().await?;
        let is_cleared = profile.cleared.is_some_and(|cleared| cleared.at >= at);
        let mut hides_others = profile.has_summaries()
            || coming.iter().any(|imported| {
                imported.message.timestamp <= at && !self.origins.contains(&imported.origin())
            });
        if !is_cleared && !hides_others {
            each(store, |stored| {
                let message = &stored.message;
                hides_others |= message.is_imported()
                    && message.timestamp <= at
                    && !profile.hides(stored)
                    && Origin::of(message).is_none_or(|origin| !self.origins.contains(&origin));
            })
            .await?;
        }
        if !is_cleared && hides_others {
            return Ok(Begun { rest: self.origins });
        }
        if !is_cleared {
            store.change_profile(Box::new(move |profile| profile.clear(at, 0))).await?;
        }
        Ok(Begun { rest: HashSet::new() })
    }
}

impl Begun {
    /// Once they are stored: takes out of the context, one by one, what no marker hides.
    pub(super) async fn end(self, store: &FileConversationStore) -> Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        let profile = store.profile().await?;
        let mut seqs = Vec::new();
        each(store, |stored| {
            let is_one = Origin::of(&stored.message).is_some_and(|at| self.rest.contains(&at));
            if is_one && !profile.hides(stored) && !profile.is_pruned(stored.seq) {
                seqs.push(stored.seq);
            }
        })
        .await?;
        if !seqs.is_empty() {
            store.change_profile(Box::new(move |profile| profile.prune(seqs))).await?;
        }
        Ok(())
    }
}

/// Hands over every message of a conversation.
async fn each(store: &FileConversationStore, mut take: impl FnMut(&StoredMessage)) -> Result<()> {
    let mut seen = 0u64;
    loop {
        let end = seen.saturating_add(STRETCH);
        let reading = store.read_kept(seen + 1..=end).await?;
        reading.messages.iter().for_each(|stored| take(stored));
        if reading.last_seq <= end {
            return Ok(());
        }
        seen = end;
    }
}
