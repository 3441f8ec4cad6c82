//! What a store's medium has to do. Everything else that a store can do is provided on top of it.

pub(crate) mod append;
pub(crate) mod backend_state;
pub(crate) mod batch;
pub(crate) mod current_state;
pub(crate) mod forget;
pub(crate) mod forget_plan;
pub(crate) mod limits;
pub(crate) mod limits_effect;
pub(crate) mod lookup;
pub(crate) mod read;
pub(crate) mod restore;
pub(crate) mod settings;
pub(crate) mod snapshot;
pub(crate) mod view;

use std::fmt::Debug;
use std::io::Read;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::clock::{Clock, SystemClock};
use crate::error::Result;
use crate::message::redact::Redactor;
use crate::scope::Scope;
use crate::store::folder::artifact_contents::ArtifactContents;
use crate::store::record::artifact::{AddedArtifact, Artifact, NewArtifact};
use crate::store::record::document::DocumentId;
use crate::store::record::finding::Finding;
use crate::store::record::read_result::ReadResult;
use crate::store::record::retention::Retention;
use crate::store::record::store_state::StoreState;
use batch::Batch;

/// Which messages a read asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadQuery {
    /// The newest so many.
    Tail(usize),
    /// Those with these numbers. A range may be empty or end beyond the last number.
    Seqs(RangeInclusive<u64>),
    /// Those whose [`ordered_at`](crate::StoredMessage::ordered_at) lies in this range.
    Times(Range<Timestamp>),
}

/// The medium of one conversation: what an implementor of [`ConversationStore`](crate::ConversationStore) writes.
///
/// It keeps messages and small documents, and changes them in batches. It knows nothing of settings, limits, summaries or
/// snapshots: the provided methods of `ConversationStore` keep these in documents.
#[async_trait]
pub trait StoreBackend: Debug + Send + Sync {
    /// Whose conversation this is.
    fn scope(&self) -> &Arc<Scope>;

    /// How far the conversation goes, and its revision.
    ///
    /// # Errors
    /// What keeps the medium from being read.
    async fn state(&self) -> Result<StoreState>;

    /// The stored messages that the query names, sorted by time, then by number. Messages that the limits hide are
    /// included. A medium that knows the settings may leave out of a tail what has expired. A message that cannot be read becomes a finding in the result.
    ///
    /// # Errors
    /// What keeps the medium from being read.
    async fn read(&self, query: ReadQuery) -> Result<ReadResult>;

    /// The `n` messages before the newest `skip` ones, as [`read`](Self::read) returns them. A limit on messages is found
    /// by it. The default reads the newest ones too: override it if the medium can skip them.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    async fn read_before(&self, skip: usize, n: usize) -> Result<ReadResult> {
        let mut result = self.read(ReadQuery::Tail(skip.saturating_add(n))).await?;
        result.messages.truncate(result.messages.len().saturating_sub(skip));
        Ok(result)
    }

    /// A document's bytes as they were last committed; `None` if there is no such document.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) for a document that cannot be read.
    async fn document(&self, id: &DocumentId) -> Result<Option<Zeroizing<Vec<u8>>>>;

    /// Writes the documents, then adds the messages, then deletes. All of it is durable when this returns `Ok`. A crash
    /// leaves a prefix of that order. Returns the state afterwards.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::Error::Conflict), and nothing is changed, unless the revision is still
    /// [`Batch::expected_revision`].
    async fn commit(&self, batch: Batch) -> Result<StoreState>;

    /// Where the time comes from. The default is the system's clock.
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    /// What masks messages before they are stored. A conversation applies it to utterances off the record too. The
    /// default masks nothing.
    fn redactor(&self) -> Option<Arc<dyn Redactor>> {
        None
    }

    /// What the store accepts and how much it keeps. The default accepts messages up to 1 MiB and keeps everything.
    fn policy(&self) -> StorePolicy {
        StorePolicy::default()
    }

    /// Where the conversation's artifacts are. The default is `None`: the store has no artifacts.
    fn artifact_store(&self) -> Option<&dyn ArtifactStore> {
        None
    }
}

/// Where artifacts are that a store does not have yet, such as a team's server.
#[async_trait]
pub trait ArtifactSource: Debug + Send + Sync {
    /// Adds the artifact with this id to the conversation, if it is one that belongs there. Returns whether it did.
    ///
    /// # Errors
    /// What prevents fetching it.
    async fn fetch(&self, scope: &Scope, id: &str) -> Result<bool>;
}

/// Large data beside a conversation's messages.
#[async_trait]
pub trait ArtifactStore: Debug + Send + Sync {
    /// The artifacts, oldest first, and what is wrong with those that cannot be read.
    async fn artifacts(&self) -> Result<(Vec<Artifact>, Vec<Finding>)>;

    /// Reads `content` to its end and adds it as an artifact, in constant memory. It is durable when this returns. A
    /// prompt holds it only if a message refers to it. Bytes that the conversation has already are not added again,
    /// except for results of tools: each belongs to its own message and is deleted with it.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if `content` cannot be read, and those of
    /// [`change_profile`](crate::ConversationStore::change_profile). Nothing is added then.
    async fn add_artifact(
        &self,
        artifact: NewArtifact,
        content: Box<dyn Read + Send>,
    ) -> Result<AddedArtifact>;

    /// Opens an artifact by its id, to be read from any position; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) or [`Error::WrongKey`](crate::Error::WrongKey) for one that does not
    /// open; it stays as it is.
    async fn open_artifact(&self, id: &str) -> Result<Option<ArtifactContents>>;

    /// Adds an artifact that is elsewhere and belongs here. Returns whether it did. The default knows of none.
    ///
    /// # Errors
    /// What prevents fetching it.
    async fn fetch_artifact(&self, id: &str) -> Result<bool> {
        let _ = id;
        Ok(false)
    }

    /// Deletes artifacts for ever. An id that is not there is no error. References to them stay.
    async fn delete_artifacts(&self, ids: &[String]) -> Result<()>;
}

/// What a store accepts and how much it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct StorePolicy {
    /// How much is kept of conversations that have no limits of their own.
    pub retention: Retention,
    /// The most bytes of a message as JSON, and of a document that a host writes.
    pub max_message_bytes: usize,
}

impl Default for StorePolicy {
    fn default() -> Self {
        Self { retention: Retention::FOREVER, max_message_bytes: 1 << 20 }
    }
}

impl StorePolicy {
    /// Sets the limits of conversations that have none of their own.
    pub fn retention(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// Sets the size limit of a message.
    pub fn max_message_bytes(self, max_message_bytes: usize) -> Self {
        Self { max_message_bytes, ..self }
    }
}
