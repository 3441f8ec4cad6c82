//! Conversations at rest: appended to, read from the end, forgotten on request.

pub(crate) mod admin;
pub(crate) mod artifact;
pub(crate) mod check;
pub(crate) mod commit;
pub(crate) mod compact;
pub(crate) mod delete;
pub(crate) mod file_store;
pub(crate) mod folder;
pub(crate) mod keyring;
pub(crate) mod pack;
pub(crate) mod read;
pub(crate) mod record;
pub(crate) mod repair;
pub(crate) mod settings;
pub(crate) mod snapshot;
#[cfg(test)]
mod tests;
pub(crate) mod write;

use std::io::Read;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::{Timestamp, Zoned};
use zeroize::Zeroizing;

pub use admin::catalog_baseline::StoreInventory;
pub use admin::move_store::{MovedStore, move_store};
pub use admin::rekey::{Rekey, RekeyReport};
pub use artifact::contents::ArtifactContents;
pub use artifact::find::find_artifact;
pub use artifact::lines::ArtifactLines;
pub use check::baseline::Inventory;
pub use check::repair_kind::{RepairAction, RepairKind};
pub use check::report::{Progress, Report};
pub use delete::cleanup::CleanupReport;
pub use delete::limits::{AffectedMessages, HiddenMessages, LimitsEffect};
pub use delete::plan::{ForgetPlan, ForgetReport};
pub use file_store::artifact_references::ArtifactReferences;
pub(crate) use file_store::blocking;
pub use file_store::options::StoreOptions;
pub use file_store::{FileConversationStore, PackReport};
pub use folder::scopes::scopes;
pub use keyring::ids::{StoreKey, copy_salt, store_keys};
pub use keyring::{create_vault, store_exists};
pub use read::stats::Stats;
pub use record::artifact::{
    AddedArtifact, Artifact, ArtifactKind, NewArtifact, artifact_references,
};
pub use record::document::Document;
pub use record::encoding::StoredMessage;
pub use record::finding::{Finding, FindingKind};
pub use record::read_result::ReadResult;
pub use record::retention::Retention;
pub use record::snapshot::{SavedMessage, Snapshot};
pub use repair::{RepairOptions, RepairReport};
pub use settings::profile::{Cleared, Cost, Profile, ProfileChange};
pub use settings::summary::Summary;
pub use snapshot::restore::RestoreThreads;

use crate::clock::{Clock, SystemClock};
use crate::error::Result;
use crate::message::ChatMessage;
use crate::redact::Redactor;
use crate::scope::Scope;

/// One scope's messages, in the order (time, number).
#[async_trait]
pub trait ConversationStore: Send + Sync {
    /// Whose conversation this is.
    fn scope(&self) -> &Arc<Scope>;

    /// The clock that gives messages their time.
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    /// What masks messages before they are stored. A conversation applies it to utterances off the record too.
    fn redactor(&self) -> Option<Arc<dyn Redactor>> {
        None
    }

    /// Keeps one message. When this returns, a power cut no longer loses it.
    ///
    /// Dropping the future does not stop an append that has begun.
    async fn append_message(&self, message: ChatMessage) -> Result<Arc<StoredMessage>>;

    /// Keeps many messages, in order; cheaper than one by one, and durable when this returns. Some dozens become a file
    /// each. More become packs of up to 32,768 messages or 32 MiB: these are far cheaper still, and other processes may
    /// append between one pack and the next, though they wait for each of them.
    ///
    /// # Errors
    /// [`Error::Partial`](crate::Error::Partial) says how many of the first were kept.
    async fn append_all(&self, messages: Vec<ChatMessage>) -> Result<Vec<Arc<StoredMessage>>>;

    /// Keeps what answers a stored message, in order and durably, if that message is still there at the moment of writing.
    /// Every answer to an utterance is kept with this: nothing else keeps words whose utterance another process has
    /// forgotten meanwhile. If the context was cleared since the utterance, the answers are kept outside of it as well
    /// (see [`Profile::prune`]).
    ///
    /// # Errors
    /// [`Error::UtteranceForgotten`](crate::Error::UtteranceForgotten) if the message was forgotten, removed with its
    /// conversation, or has expired; [`Error::OtherScope`](crate::Error::OtherScope) if it is another conversation's.
    /// Nothing is kept then. Otherwise those of [`append_all`](Self::append_all).
    async fn append_answers(
        &self,
        answers: Vec<ChatMessage>,
        answered: &StoredMessage,
    ) -> Result<Vec<Arc<StoredMessage>>>;

    /// Keeps answers as [`append_answers`](Self::append_answers) does and replaces a document as
    /// [`write_document`](Self::write_document) does. A store may do both in one commit. The answers are kept even if
    /// the document cannot be written; the second part of what is returned says whether it was.
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

    /// The newest `n` messages that open, oldest first; fewer only where there are fewer.
    async fn read_tail(&self, n: usize) -> Result<ReadResult>;

    /// The messages with these numbers, in conversation order.
    async fn read_seqs(&self, seqs: RangeInclusive<u64>) -> Result<ReadResult>;

    /// The messages whose file name's time lies in this range, in conversation order. Each time is the later of the
    /// message's own and the one before it, to the millisecond.
    async fn read_times(&self, times: Range<Timestamp>) -> Result<ReadResult>;

    /// What forgetting these messages would delete. Changes nothing.
    ///
    /// # Errors
    /// Those of [`forget`](Self::forget).
    async fn plan_forget(&self, seqs: &[RangeInclusive<u64>]) -> Result<ForgetPlan>;

    /// What [`forget_all`](Self::forget_all) would delete. Changes nothing.
    ///
    /// # Errors
    /// Those of [`forget`](Self::forget).
    async fn plan_forget_all(&self) -> Result<ForgetPlan>;

    /// Deletes what a plan announced and is still there, and nothing else.
    ///
    /// # Errors
    /// [`Error::MoreThanAnnounced`](crate::Error::MoreThanAnnounced), and nothing is deleted, where something would go now
    /// that the plan does not name. Those of [`forget`](Self::forget).
    async fn forget_planned(&self, plan: &ForgetPlan) -> Result<ForgetReport>;

    /// Deletes messages by number for ever, with restored copies, the originals of copies and what was made of them,
    /// and records that it did. The answer says what went; [`plan_forget`](Self::plan_forget) says it before.
    async fn forget(&self, seqs: &[RangeInclusive<u64>]) -> Result<ForgetReport>;

    /// Deletes every message, snapshot, artifact and summary for ever, with title, tags and notes. A context stays, with
    /// its name, its personality and its limits.
    ///
    /// # Errors
    /// Those of [`forget`](Self::forget).
    async fn forget_all(&self) -> Result<ForgetReport>;

    /// A document's bytes as they were last written; `None` where none ever was.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged), [`Error::WrongKey`](crate::Error::WrongKey),
    /// [`Error::NewerFormat`](crate::Error::NewerFormat) or [`Error::NotPlain`](crate::Error::NotPlain) for a file
    /// that does not open; it stays as it is.
    async fn read_document(&self, document: Document) -> Result<Option<Zeroizing<Vec<u8>>>>;

    /// Keeps any bytes as the document, in place of those before. Whenever the power fails, either the old bytes or
    /// the new ones are there, whole; when this returns, the new ones. Of several writers at once the last one's
    /// stay. A damaged document is replaced.
    ///
    /// # Errors
    /// [`Error::TooLarge`](crate::Error::TooLarge) for more bytes than a message's record may take. What this
    /// program cannot open but another may, and what is no plain file, is refused as reading refuses it.
    async fn write_document(&self, document: Document, plaintext: &[u8]) -> Result<()>;

    /// The conversation's own settings; the defaults where it has none, or where they cannot be read, of which every
    /// reading tells.
    async fn profile(&self) -> Result<Arc<Profile>>;

    /// Changes the settings as they are at that moment, so that no other change is lost; durable when this returns.
    /// Tighter limits hide messages at once: [`limits_effect`](Self::limits_effect) says which before.
    ///
    /// # Errors
    /// [`Error::HiddenMessages`](crate::Error::HiddenMessages) for limits that would show again what those in force hide:
    /// that is for [`change_limits`](Self::change_limits). As [`write_document`](Self::write_document).
    async fn change_profile(&self, change: ProfileChange) -> Result<Profile>;

    /// What other limits would hide and what they would show again; `None` for those of all conversations. Changes
    /// nothing.
    async fn limits_effect(&self, retention: Option<Retention>) -> Result<LimitsEffect>;

    /// Changes how much is kept, once somebody has agreed to what that does.
    ///
    /// # Errors
    /// [`Error::MoreThanAnnounced`](crate::Error::MoreThanAnnounced), and nothing is changed, where the conversation has
    /// changed since the effect was worked out. As [`change_profile`](Self::change_profile).
    async fn change_limits(
        &self,
        retention: Option<Retention>,
        hidden: HiddenMessages,
        announced: &LimitsEffect,
    ) -> Result<Profile>;

    /// Clears the context up to now: no history in later prompts goes back further. Deletes nothing, and applies to
    /// all threads.
    async fn clear(&self) -> Result<Profile>;

    /// Removes the messages that the retention hides.
    ///
    /// # Errors
    /// [`Error::ClockBehind`](crate::Error::ClockBehind) where the clock shows a time before the newest message's, and
    /// [`Error::Damaged`](crate::Error::Damaged) where the settings cannot be read. Nothing is removed then.
    async fn cleanup(&self) -> Result<CleanupReport>;

    /// The snapshots, the newest first, and what is wrong with those that cannot be read.
    async fn snapshots(&self) -> Result<(Vec<Snapshot>, Vec<Finding>)>;

    /// A snapshot by its id; `None` where there is none.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) or [`Error::WrongKey`](crate::Error::WrongKey) for one that does not
    /// open; it stays as it is.
    async fn read_snapshot(&self, id: &str) -> Result<Option<Snapshot>>;

    /// Keeps a snapshot, in place of any with its id; durable when this returns.
    ///
    /// # Errors
    /// [`Error::TooLarge`](crate::Error::TooLarge) for one of over 11 MiB.
    async fn save_snapshot(&self, snapshot: Snapshot) -> Result<()>;

    /// Deletes a snapshot for ever; no error where there is none.
    async fn delete_snapshot(&self, id: &str) -> Result<()>;

    /// The artifacts, the oldest first, and what is wrong with those that cannot be read.
    async fn artifacts(&self) -> Result<(Vec<Artifact>, Vec<Finding>)>;

    /// Adds what is read to its end as an artifact, durable when this returns, in constant memory. It is no context by
    /// itself: a message refers to it. Nothing is added where the conversation has the same bytes already, but for results
    /// of tools: each is its own message's, and goes with it.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) for what cannot be read, and those of
    /// [`change_profile`](Self::change_profile). Nothing is added then.
    async fn add_artifact(
        &self,
        artifact: NewArtifact,
        content: Box<dyn Read + Send>,
    ) -> Result<AddedArtifact>;

    /// An artifact by its id, to be read from any place; `None` where there is none.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) or [`Error::WrongKey`](crate::Error::WrongKey) for one that does not
    /// open; it stays as it is.
    async fn open_artifact(&self, id: &str) -> Result<Option<ArtifactContents>>;

    /// Deletes artifacts for ever; no error for one that is not there. References to them stay.
    async fn delete_artifacts(&self, ids: &[String]) -> Result<()>;

    /// Has a summary stand for messages, if it goes on from the last one of its thread as that was `before`, and nothing
    /// that it covers was forgotten or cleared since; in place of that one where it `goes_on` with it. Whether it does now.
    async fn compact(
        &self,
        compaction: Summary,
        before: Option<Summary>,
        goes_on: bool,
    ) -> Result<bool>;

    /// Takes a thread's last summary back, so that the messages themselves are context again. Whether there was one.
    async fn uncompact(&self, thread: Option<String>) -> Result<bool>;

    /// Keeps a snapshot's messages anew, said `now`, each in its own thread unless another is named, but for those that
    /// the thread has since that moment. Each tells of where it is from in its metadata.
    ///
    /// # Errors
    /// [`Error::NoSuchSnapshot`](crate::Error::NoSuchSnapshot), and those of reading it and of appending.
    async fn restore(
        &self,
        id: &str,
        since: Timestamp,
        threads: RestoreThreads,
        now: Zoned,
    ) -> Result<Vec<Arc<StoredMessage>>>;
}
