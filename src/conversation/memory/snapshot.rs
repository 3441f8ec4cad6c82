//! Saves and restores snapshots of a conversation's recent messages.

use std::sync::Arc;

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::context::rolling_window;
use crate::conversation::Conversation;
use crate::conversation::summary::writer::WritingTask;
use crate::error::{Error, Result};
use crate::message::texts;
use crate::store::record::id_prefix;
use crate::store::{Profile, RestoreThreads, SavedMessage, Snapshot, StoredMessage};

const SNAPSHOT: WritingTask = WritingTask { text: texts::SNAPSHOT, sentences: 4, longest: 1000 };

impl Conversation {
    /// Saves the messages of all threads within the window and since the last clear, with a summary by the model.
    /// Clears nothing. If the model fails, or there is none, the snapshot is saved with a note instead of the
    /// summary.
    ///
    /// # Errors
    /// [`Error::EmptySnapshot`] if the window is empty, and those of reading messages and writing the snapshot.
    pub async fn save_snapshot(&self, description: Option<String>) -> Result<Snapshot> {
        let profile = self.store.profile().await?;
        let start = self.window_start(&profile);
        let reading = self.store.read_times(start..Timestamp::MAX).await?;
        let messages: Vec<_> =
            reading.messages.into_iter().filter(|stored| !profile.hides(stored)).collect();
        if messages.is_empty() {
            return Err(Error::EmptySnapshot);
        }
        let now = self.clock.now().timestamp();
        let start = profile.cleared.map_or(start, |cleared| start.max(cleared.at));
        let saved = messages.iter().map(|m| SavedMessage::new(m.seq, m.message.clone()));
        let mut snapshot = Snapshot::new(now, (start, now), saved.collect())?;
        snapshot.description = description;
        match self.summary(&messages).await {
            Ok(Some(summary)) => snapshot.summary = String::clone(&summary),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "a snapshot has no summary"),
        }
        let id = snapshot.id.clone();
        self.store.save_snapshot(snapshot).await?;
        // Messages forgotten meanwhile are not in it.
        self.store.read_snapshot(&id).await?.ok_or(Error::NoSuchSnapshot { nearest: Vec::new() })
    }

    /// Returns the snapshot with this id, or the only one whose id begins with it.
    ///
    /// # Errors
    /// [`Error::NoSuchSnapshot`] names the most similar ids.
    pub async fn snapshot(&self, id: &str) -> Result<Snapshot> {
        let profile = self.store.profile().await?;
        let found = self.store.read_snapshot(meant(id, &profile)?).await?;
        found.ok_or_else(|| no_such(id, &profile))
    }

    /// Restores a snapshot's messages, each into its own thread, so that the next turn there sees them. The copies
    /// have the current time; their metadata holds the source and the original time. Messages that a thread still
    /// sees are not copied. If this conversation is in a thread, only that thread's messages are restored.
    ///
    /// # Errors
    /// Those of [`snapshot`](Self::snapshot) and of appending.
    pub async fn restore(&self, id: &str) -> Result<Vec<Arc<StoredMessage>>> {
        self.bring_back(id, self.restored_threads()).await
    }

    /// Restores all of a snapshot's messages into one thread; `None` means outside all threads.
    ///
    /// # Errors
    /// Those of [`restore`](Self::restore).
    pub async fn restore_into(
        &self,
        id: &str,
        thread: Option<String>,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        self.bring_back(id, self.restored_threads().all_into(thread)).await
    }

    fn restored_threads(&self) -> RestoreThreads {
        match &self.parts.prompts.thread {
            Some(thread) => RestoreThreads::default().only(thread),
            None => RestoreThreads::default(),
        }
    }

    async fn bring_back(
        &self,
        id: &str,
        threads: RestoreThreads,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        let snapshot = self.snapshot(id).await?;
        let mut state = self.wait().await;
        self.keep_unfinished(&mut state).await?;
        state.request = None;
        let since = self.window_start(&*self.store.profile().await?);
        self.store.restore(&snapshot.id, since, threads, self.clock.now()).await
    }

    /// Deletes a snapshot permanently.
    ///
    /// # Errors
    /// Those of [`snapshot`](Self::snapshot). A snapshot that does not open is deleted too.
    pub async fn delete_snapshot(&self, id: &str) -> Result<String> {
        let profile = self.store.profile().await?;
        let id = meant(id, &profile)?;
        match self.store.read_snapshot(id).await {
            Ok(None) => return Err(no_such(id, &profile)),
            // A damaged snapshot can be deleted.
            Ok(Some(_)) | Err(Error::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
        self.store.delete_snapshot(id).await?;
        Ok(id.to_owned())
    }

    /// A short summary of the newest messages; `None` if there is no model.
    async fn summary(&self, messages: &[Arc<StoredMessage>]) -> Result<Option<Zeroizing<String>>> {
        if self.model.is_none() || messages.is_empty() {
            return Ok(None);
        }
        let room = self.room().await?;
        let said = messages.iter().map(|stored| &stored.message);
        Ok(Some(self.write_text(&SNAPSHOT, &self.newest_lines(said, room)).await?))
    }

    fn window_start(&self, profile: &Profile) -> Timestamp {
        rolling_window::start(
            self.clock.now().timestamp(),
            profile.window(self.parts.snapshot_window),
            false,
        )
    }
}

/// Completes an abbreviated id.
fn meant<'a>(id: &str, profile: &'a Profile) -> Result<&'a str> {
    id_prefix::only(id, profile.snapshots()).ok_or_else(|| no_such(id, profile))
}

fn no_such(id: &str, profile: &Profile) -> Error {
    Error::NoSuchSnapshot { nearest: id_prefix::nearest(id, profile.snapshots()) }
}
