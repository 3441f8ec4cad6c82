//! Stores of conversations: append, read from the newest end, forget.

pub(crate) mod care;
pub(crate) mod file_store;
pub(crate) mod folder;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod rules;
#[cfg(test)]
mod tests;
pub(crate) mod write;

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::{Timestamp, Zoned};
use zeroize::Zeroizing;

pub use file_store::FileConversationStore;
pub use file_store::artifact_references::ArtifactReferences;
pub(crate) use file_store::blocking;
pub use file_store::options::StoreOptions;
pub use folder::artifact_contents::ArtifactContents;
pub use folder::artifact_contents::ArtifactLines;
pub use folder::artifact_measure::ArtifactMeasure;
pub(crate) use folder::conversation_folders::scopes;
#[cfg(feature = "config")]
pub(crate) use folder::keyring::store_keys::{StoreKey, copy_salt, store_keys};
#[cfg(feature = "config")]
pub(crate) use folder::keyring::{create_vault, store_exists};
pub(crate) use read::stats::Stats;
pub use record::artifact::{
    AddedArtifact, Artifact, ArtifactKind, NewArtifact, artifact_references,
};
pub use record::document::{Document, DocumentId};
pub use record::encoding::StoredMessage;
pub(crate) use record::finding::Progress;
pub use record::finding::{Finding, FindingKind};
pub use record::profile::{Cleared, Cost, Profile, ProfileChange};
pub use record::read_result::ReadResult;
pub use record::retention::Retention;
pub use record::seq_set::merged_ranges;
pub use record::snapshot::{SavedMessage, Snapshot};
pub use record::store_state::StoreState;
pub use record::summary::Summary;
pub use rules::batch::Batch;
pub use rules::forget_plan::{ForgetPlan, ForgetReport};
pub use rules::limits_effect::CleanupReport;
pub use rules::limits_effect::{AffectedMessages, HiddenMessages, LimitsEffect};
pub use rules::lookup::find_artifact;
pub use rules::restore::RestoreThreads;
pub use rules::{ArtifactSource, ArtifactStore, ReadQuery, StoreBackend, StorePolicy};

use crate::error::{Error, Result};
use crate::message::ChatMessage;
use rules::forget_plan::ForgetRequest;
use rules::restore::RestoreJob;

/// The messages of one scope, in the order (time, number).
///
/// Every method has a default on top of [`StoreBackend`]. A custom store implements that trait, and this one with an
/// empty body: `impl ConversationStore for MyStore {}`. [`FileConversationStore`] overrides the methods with versions
/// that hold its lock.
#[async_trait]
pub trait ConversationStore: StoreBackend {
    /// Stores one message. It is durable when this returns.
    ///
    /// Dropping the future does not stop an append of the file store that has begun.
    async fn append_message(&self, message: ChatMessage) -> Result<Arc<StoredMessage>> {
        let stored = self.append_all(vec![message]).await?;
        stored.into_iter().next().ok_or(Error::ShuttingDown)
    }

    /// Stores many messages in order. This is cheaper than one call for each. They are durable when it returns. Other
    /// writers may append between two parts of a large batch. The file store keeps up to 8 messages in files of their
    /// own, unless fewer stay loose, and more of them in packs: three fsyncs for each, and more when packs merge.
    ///
    /// # Errors
    /// [`Error::Partial`] says how many of the first messages were stored.
    async fn append_all(&self, messages: Vec<ChatMessage>) -> Result<Vec<Arc<StoredMessage>>> {
        rules::append::append(self, messages).await
    }

    /// Stores the answers to a stored message, in order and durably, if that message still exists at the moment of
    /// writing. Store every answer with this: no other method checks whether the utterance was forgotten meanwhile.
    /// If the context was cleared since the utterance, the answers are left out of the context too (see
    /// [`Profile::prune`]).
    ///
    /// # Errors
    /// [`Error::UtteranceForgotten`] if the message was forgotten, was removed with its conversation, or has expired;
    /// [`Error::OtherScope`] if it belongs to another conversation. Nothing is stored then. Otherwise those of
    /// [`append_all`](Self::append_all).
    async fn append_answers(
        &self,
        answers: Vec<ChatMessage>,
        answered: &StoredMessage,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        rules::append::append_answers(self, answers, answered).await
    }

    /// Stores answers as [`append_answers`](Self::append_answers) does, and replaces a document as
    /// [`write_document`](Self::write_document) does. A store may do both in one commit. The answers are stored even
    /// if writing the document fails; the second part of the result reports that.
    ///
    /// # Errors
    /// Those of [`append_answers`](Self::append_answers). The document may have been replaced then.
    async fn append_answers_with_document(
        &self,
        answers: Vec<ChatMessage>,
        answered: &StoredMessage,
        document: Document,
        plaintext: &[u8],
    ) -> Result<(Vec<Arc<StoredMessage>>, Result<()>)> {
        let stored = self.append_answers(answers, answered).await?;
        Ok((stored, self.write_document(document, plaintext).await))
    }

    /// Returns the newest `n` readable messages, oldest first; fewer only if there are fewer.
    async fn read_tail(&self, n: usize) -> Result<ReadResult> {
        rules::read::tail(self, n).await
    }

    /// Returns the newest `n` of one thread, or of the messages outside all threads. The default also reads what others have
    /// said since; the file store does not.
    async fn read_thread(&self, thread: Option<&str>, n: usize) -> Result<ReadResult> {
        let mut asked = n;
        loop {
            let reading = self.read_tail(asked).await?;
            if let Some(reading) = reading.of_thread(thread, n, asked) {
                return Ok(reading);
            }
            asked = asked.saturating_mul(4);
        }
    }

    /// The messages with these numbers, in conversation order.
    async fn read_seqs(&self, seqs: RangeInclusive<u64>) -> Result<ReadResult> {
        rules::read::read(self, ReadQuery::Seqs(seqs)).await
    }

    /// The messages whose [`ordered_at`](StoredMessage::ordered_at) lies in this range, in conversation order. That
    /// is the message's own time or that of the message before it, whichever is later, in milliseconds.
    async fn read_times(&self, times: Range<Timestamp>) -> Result<ReadResult> {
        rules::read::read(self, ReadQuery::Times(times)).await
    }

    /// Plans a [`forget`](Self::forget): returns what it would delete. Changes nothing.
    ///
    /// # Errors
    /// Those of [`forget`](Self::forget).
    async fn plan_forget(&self, seqs: &[RangeInclusive<u64>]) -> Result<ForgetPlan> {
        rules::forget::plan(self, ForgetRequest::Numbers(seqs.to_vec())).await
    }

    /// Plans to forget messages with the answers to them: what followed in the same thread, up to the next message of a
    /// person. [`forget_planned`](Self::forget_planned) carries it out, and [`ForgetPlan::without_answers`] leaves them.
    ///
    /// # Errors
    /// Those of [`forget`](Self::forget).
    async fn plan_forget_exchanges(&self, seqs: &[RangeInclusive<u64>]) -> Result<ForgetPlan> {
        rules::forget::plan(self, ForgetRequest::Exchanges(seqs.to_vec())).await
    }

    /// Plans a [`forget_all`](Self::forget_all): returns what it would delete. Changes nothing.
    ///
    /// # Errors
    /// Those of [`forget`](Self::forget).
    async fn plan_forget_all(&self) -> Result<ForgetPlan> {
        rules::forget::plan(self, ForgetRequest::All).await
    }

    /// Deletes what a plan named, as far as it still exists, and nothing else.
    ///
    /// # Errors
    /// [`Error::MoreThanAnnounced`] if more would be deleted now than the plan names; nothing is deleted then. Those
    /// of [`forget`](Self::forget).
    async fn forget_planned(&self, plan: &ForgetPlan) -> Result<ForgetReport> {
        rules::forget::forget(self, plan.asked(), Some(plan)).await
    }

    /// Deletes messages by number permanently, with restored copies, originals of copies and everything derived from
    /// them. Records the deletion. The report names what was deleted; [`plan_forget`](Self::plan_forget) tells it
    /// before.
    async fn forget(&self, seqs: &[RangeInclusive<u64>]) -> Result<ForgetReport> {
        rules::forget::forget(self, ForgetRequest::Numbers(seqs.to_vec()), None).await
    }

    /// Deletes every message, snapshot, artifact and summary permanently, with title, tags and notes. A context keeps
    /// its name, its personality and its limits.
    ///
    /// # Errors
    /// Those of [`forget`](Self::forget).
    async fn forget_all(&self) -> Result<ForgetReport> {
        rules::forget::forget(self, ForgetRequest::All, None).await
    }

    /// Returns a document's bytes as last written; `None` if it was never written.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::WrongKey`], [`Error::NewerFormat`] or [`Error::NotPlain`] for a file that does
    /// not open. The file is left unchanged.
    async fn read_document(&self, document: Document) -> Result<Option<Zeroizing<Vec<u8>>>> {
        self.document(&document.into()).await
    }

    /// Replaces a document by these bytes. After a power cut, the document holds either the old or the new bytes,
    /// complete. When this returns, it holds the new ones. Of several concurrent writers, the last one wins. A
    /// damaged document is replaced.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more bytes than a message may have. A file under another key, of a newer format, or
    /// that is not a plain file is refused as when reading.
    async fn write_document(&self, document: Document, plaintext: &[u8]) -> Result<()> {
        rules::settings::write_document(self, document, plaintext).await
    }

    /// The conversation's own settings; the defaults if it has none. If they cannot be read, the file store returns
    /// the defaults, and every read reports it.
    async fn profile(&self) -> Result<Arc<Profile>> {
        rules::read::profile(self).await.map(Arc::new)
    }

    /// Applies a change to the current settings, so that no concurrent change is lost. It is durable when this
    /// returns. Tighter limits hide messages at once: [`limits_effect`](Self::limits_effect) tells which before.
    ///
    /// # Errors
    /// [`Error::HiddenMessages`] for limits that would show hidden messages again: use
    /// [`change_limits`](Self::change_limits) for those. Those of [`write_document`](Self::write_document).
    async fn change_profile(&self, change: ProfileChange) -> Result<Profile> {
        rules::settings::change(self, change).await
    }

    /// What other limits would hide, and what they would show again; `None` means the limits of all conversations.
    /// Changes nothing.
    async fn limits_effect(&self, retention: Option<Retention>) -> Result<LimitsEffect> {
        rules::limits::effect_on(self, retention).await
    }

    /// Changes the limits after somebody has agreed to the effect.
    ///
    /// # Errors
    /// [`Error::MoreThanAnnounced`] if the conversation has changed since the effect was computed; nothing is changed
    /// then. Those of [`change_profile`](Self::change_profile).
    async fn change_limits(
        &self,
        retention: Option<Retention>,
        hidden: HiddenMessages,
        announced: &LimitsEffect,
    ) -> Result<Profile> {
        rules::limits::change(self, retention, hidden, announced).await
    }

    /// Clears the context: later prompts hold no message from before now. Deletes nothing, and applies to all
    /// threads.
    async fn clear(&self) -> Result<Profile> {
        rules::settings::clear(self).await
    }

    /// Deletes the messages that the limits hide.
    ///
    /// # Errors
    /// [`Error::ClockBehind`] if the clock shows a time more than a week before the newest message's, and
    /// [`Error::Damaged`] if the settings cannot be read. Nothing is deleted then.
    async fn cleanup(&self) -> Result<CleanupReport> {
        rules::limits::cleanup(self).await
    }

    /// The snapshots, newest first, and findings about those that cannot be read.
    async fn snapshots(&self) -> Result<(Vec<Snapshot>, Vec<Finding>)> {
        let view = rules::view::View::of(self).await?;
        rules::read::list_snapshots(self, &view.profile).await
    }

    /// Returns a snapshot by its id; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Damaged`] or [`Error::WrongKey`] for one that does not open. It is left unchanged.
    async fn read_snapshot(&self, id: &str) -> Result<Option<Snapshot>> {
        let view = rules::view::View::of(self).await?;
        rules::read::read_snapshot(self, &view, id).await
    }

    /// Stores a snapshot. Replaces one with the same id. It is durable when this returns.
    ///
    /// # Errors
    /// [`Error::TooLarge`] above 11 MiB, [`Error::EmptySnapshot`] if all its messages were forgotten meanwhile.
    async fn save_snapshot(&self, snapshot: Snapshot) -> Result<()> {
        rules::snapshot::save(self, &snapshot).await
    }

    /// Deletes a snapshot permanently. An unknown id is not an error.
    async fn delete_snapshot(&self, id: &str) -> Result<()> {
        rules::snapshot::delete(self, id).await
    }

    /// Stores a snapshot's messages again with the time `now`, each in its own thread unless another is named. Skips
    /// those that the thread already has since that time. The metadata of each copy names its original.
    ///
    /// # Errors
    /// [`Error::NoSuchSnapshot`], and those of reading it and of appending.
    async fn restore(
        &self,
        id: &str,
        since: Timestamp,
        threads: RestoreThreads,
        now: Zoned,
    ) -> Result<Vec<Arc<StoredMessage>>> {
        rules::snapshot::restore(self, &RestoreJob { id: id.to_owned(), since, now, threads }).await
    }

    /// Installs a summary if `before` is still the newest one of its thread, and none of the messages that it adds
    /// was forgotten or cleared. Replaces `before` if it `continues` it. Returns whether it was installed.
    async fn install_summary(
        &self,
        summary: Summary,
        before: Option<Summary>,
        continues: bool,
    ) -> Result<bool> {
        rules::settings::install_summary(self, &summary, before.as_ref(), continues).await
    }

    /// Removes a thread's newest summary, so that prompts hold its messages again. Returns whether there was one.
    async fn remove_summary(&self, thread: Option<String>) -> Result<bool> {
        rules::settings::remove_summary(self, thread.as_deref()).await
    }
}
