//! Restores messages from snapshots and tracks which messages are copies.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{Timestamp, Zoned};

use crate::error::{Error, Result};
use crate::message::{ChatMessage, IMPORTED_FROM, RESTORED_FROM, SAID_AT, SAID_IN, Source};
use crate::store::record::encoding::StoredMessage;
use crate::store::record::seq_set::SeqSet;
use crate::store::record::snapshot::{Snapshot, root};
use crate::store::rules::ReadQuery;
use crate::store::rules::current_state::CurrentState;

/// A request to restore a snapshot.
pub(crate) struct RestoreJob {
    /// The snapshot's id.
    pub(crate) id: String,
    /// The start of the context.
    pub(crate) since: Timestamp,
    pub(crate) now: Zoned,
    pub(crate) threads: RestoreThreads,
}

/// Which messages of a snapshot to restore, and into which threads. The default restores all, each into its own
/// thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct RestoreThreads {
    only: Option<String>,
    into: Target,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Target {
    #[default]
    Own,
    Thread(Option<String>),
}

impl RestoreThreads {
    /// Restores only messages of this thread.
    pub fn only(self, thread: impl Into<String>) -> Self {
        Self { only: Some(thread.into()), ..self }
    }

    /// Restores everything into one thread; `None` stands for messages without a thread.
    pub(crate) fn all_into(self, thread: Option<String>) -> Self {
        Self { into: Target::Thread(thread), ..self }
    }

    /// The thread into which a message is restored, if it is restored.
    fn target<'a>(&'a self, message: &'a ChatMessage) -> Option<Option<&'a str>> {
        let own = message.thread_id.as_deref();
        if self.only.is_some() && self.only.as_deref() != own {
            return None;
        }
        Some(match &self.into {
            Target::Own => own,
            Target::Thread(thread) => thread.as_deref(),
        })
    }
}

impl RestoreJob {
    /// The messages that are not visible in their threads now, as they will be stored. Of a file store it requires the
    /// lock, so that nothing is forgotten or restored in the meantime.
    ///
    /// # Errors
    /// [`Error::NoSuchSnapshot`].
    pub(crate) async fn missing(&self, state: &impl CurrentState) -> Result<Vec<ChatMessage>> {
        let Some(snapshot) = state.snapshot(&self.id).await? else {
            return Err(Error::NoSuchSnapshot { nearest: Vec::new() });
        };
        let reading = state.read(ReadQuery::Times(self.since..Timestamp::MAX)).await?;
        let horizon = state.horizon(state.retention()).await?;
        let shown = reading.messages.iter();
        let shown = shown.filter(|m| horizon.shows(m.name) && !state.profile().hides(m));
        Ok(self.copies(&snapshot, shown))
    }

    /// Copies of a snapshot's messages, but for those that their threads see among these.
    fn copies<'a>(
        &self,
        snapshot: &Snapshot,
        shown: impl Iterator<Item = &'a Arc<StoredMessage>>,
    ) -> Vec<ChatMessage> {
        let mut seen: BTreeSet<(Option<&str>, u64)> = shown
            .map(|stored| (stored.message.thread_id.as_deref(), root(stored.seq, &stored.message)))
            .collect();
        let new = snapshot.messages.iter().filter_map(|saved| {
            let first = root(saved.seq, &saved.message);
            let thread = self.threads.target(&saved.message)?;
            let is_new = seen.insert((thread, first));
            is_new.then(|| self.copy(snapshot, first, &saved.message, thread))
        });
        new.collect()
    }

    fn copy(
        &self,
        snapshot: &Snapshot,
        first: u64,
        message: &ChatMessage,
        into: Option<&str>,
    ) -> ChatMessage {
        let mut copy = message.clone();
        let restored = format!("{}:{first}", snapshot.id);
        copy.metadata.insert(RESTORED_FROM.to_owned(), restored);
        copy.metadata.insert(SAID_AT.to_owned(), message.said_at().to_string());
        copy.metadata.remove(IMPORTED_FROM);
        if let (source @ Source::Import, name) = message.source() {
            copy = copy.from_source(source, name);
        }
        if copy.thread_id.as_deref() != into
            && let Some(thread) = copy.thread_id.take()
        {
            copy.metadata.entry(SAID_IN.to_owned()).or_insert(thread);
        }
        copy.thread_id = into.map(str::to_owned);
        copy.timestamp = self.now.timestamp();
        copy
    }
}

/// Which messages are copies of which, as snapshots and restored messages tell.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    /// An original's number, and a copy's.
    pairs: Vec<(u64, u64)>,
    /// The numbers of messages that turned out to be none.
    originals: Vec<u64>,
}

impl Copies {
    pub(crate) fn of(snapshots: &[Snapshot]) -> Self {
        let saved = snapshots.iter().flat_map(|snapshot| &snapshot.messages);
        let pairs = saved.map(|saved| (root(saved.seq, &saved.message), saved.seq)).collect();
        Self { pairs, originals: Vec::new() }
    }

    /// Notes whether a message that may be a copy is one.
    pub(crate) fn note(&mut self, stored: &StoredMessage) {
        match stored.message.restored_from() {
            Some(_) => self.pairs.push((root(stored.seq, &stored.message), stored.seq)),
            None => self.originals.push(stored.seq),
        }
    }

    /// What is left of the numbers that may be copies, so that no message is looked at twice.
    pub(crate) fn left_of(&self, restored: &SeqSet) -> SeqSet {
        restored.without(&self.originals.iter().map(|seq| *seq..=*seq).collect())
    }

    /// The numbers, with those of their originals and of all copies of these.
    pub(crate) fn related(&self, mut seqs: SeqSet) -> SeqSet {
        let roots: BTreeSet<u64> = self
            .pairs
            .iter()
            .filter(|(root, copy)| seqs.contains(*root) || seqs.contains(*copy))
            .map(|(root, _)| *root)
            .collect();
        let concerned = self.pairs.iter().filter(|(root, _)| roots.contains(root));
        let numbers: Vec<_> =
            concerned.flat_map(|(root, copy)| [*root..=*root, *copy..=*copy]).collect();
        seqs.extend(numbers.into_iter());
        seqs
    }
}
