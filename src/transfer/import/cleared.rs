//! Keeps imported messages out of prompts that the source had cleared or pruned.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::error::Result;
use crate::store::record::import_digest::Origin;
use crate::store::{ConversationStore, FileConversationStore, StoredMessage};
use crate::transfer::import::ImportedMessage;

/// Imported messages that prompts leave out.
#[derive(Debug, Default)]
pub(super) struct ClearedMessages {
    origins: HashSet<Origin>,
    /// When the source was cleared: the time of the latest of these messages, or later.
    at: Option<Timestamp>,
    /// The messages that were pruned one by one. These say nothing of those before them.
    pruned: HashSet<Origin>,
}

impl ClearedMessages {
    /// The messages up to the moment when the source was cleared.
    pub(super) fn until(at: Timestamp, messages: &[ImportedMessage]) -> Self {
        let cleared = messages.iter().filter(|imported| imported.message.timestamp <= at);
        let origins: HashSet<_> = cleared.map(ImportedMessage::origin).collect();
        let at = Some(at).filter(|_| !origins.is_empty());
        Self { at, origins, pruned: HashSet::new() }
    }

    /// Adds a message that was cleared.
    pub(super) fn add(&mut self, imported: &ImportedMessage) {
        self.origins.insert(imported.origin());
        self.at = self.at.max(Some(imported.message.timestamp));
    }

    /// Adds a message that was pruned.
    pub(super) fn prune(&mut self, imported: &ImportedMessage) {
        self.pruned.insert(imported.origin());
    }

    /// Moves the clear marker before the messages are stored, so that no prompt sees them in between. Leaves the marker
    /// as it is if moving it would hide other messages or drop a summary. Returns the messages that it does not hide,
    /// for [`hide`].
    pub(super) async fn begin(
        mut self,
        store: &FileConversationStore,
        coming: &[ImportedMessage],
    ) -> Result<HashSet<Origin>> {
        let Some(at) = self.at else { return Ok(self.pruned) };
        let profile = store.profile().await?;
        if profile.cleared.is_some_and(|cleared| cleared.at >= at) {
            return Ok(self.pruned);
        }
        let mut hides_others = !profile.summaries.is_empty()
            || coming.iter().any(|imported| {
                imported.message.timestamp <= at && !self.origins.contains(&imported.origin())
            });
        if !hides_others {
            each(store, Which::Kept, |stored| {
                let message = &stored.message;
                hides_others |= message.is_imported()
                    && message.timestamp <= at
                    && !profile.hides(stored)
                    && Origin::of(message).is_none_or(|origin| !self.origins.contains(&origin));
            })
            .await?;
        }
        if hides_others {
            self.pruned.extend(self.origins);
        } else {
            store.change_profile(Box::new(move |profile| profile.clear(at, 0))).await?;
        }
        Ok(self.pruned)
    }
}

/// Hides messages one by one, after they are stored.
pub(super) async fn hide(store: &FileConversationStore, rest: HashSet<Origin>) -> Result<()> {
    if rest.is_empty() {
        return Ok(());
    }
    let profile = store.profile().await?;
    let mut seqs = Vec::new();
    each(store, Which::Kept, |stored| {
        let is_one = Origin::of(&stored.message).is_some_and(|at| rest.contains(&at));
        if is_one && !profile.hides(stored) && !profile.is_pruned(stored.seq) {
            seqs.push(stored.seq);
        }
    })
    .await?;
    if !seqs.is_empty() {
        store.change_profile(Box::new(move |profile| profile.prune(seqs.clone()))).await?;
    }
    Ok(())
}

/// The sequence numbers that are read at a time.
const STRETCH: u64 = 16_384;

/// Which messages [`each`] reads.
pub(super) enum Which {
    /// All that are stored.
    Kept,
    /// Those that the limits do not hide.
    Visible,
}

/// Calls `take` with every message of a conversation.
pub(super) async fn each(
    store: &FileConversationStore,
    which: Which,
    mut take: impl FnMut(&Arc<StoredMessage>),
) -> Result<()> {
    let mut seen = 0u64;
    loop {
        let end = seen.saturating_add(STRETCH);
        let reading = match which {
            Which::Kept => store.read_kept(seen + 1..=end).await?,
            Which::Visible => store.read_seqs(seen + 1..=end).await?,
        };
        reading.messages.iter().for_each(&mut take);
        if reading.last_seq <= end {
            return Ok(());
        }
        seen = end;
    }
}
