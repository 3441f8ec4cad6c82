//! Many conversations of another system, each of which goes into a scope of its own.

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::import::artifact::{self, ForeignArtifact};
use crate::import::snapshot::{self, ForeignSnapshot};
use crate::import::{Foreign, ForeignFacts, ForeignPresets, ImportReport, Refusal};
use crate::scope::Scope;
use crate::store::{ConversationStore, FileConversationStore, Progress};

/// What was read of a system that keeps several conversations.
#[derive(Debug)]
#[non_exhaustive]
pub struct ForeignConversations {
    /// The system's short name.
    pub system: &'static str,
    /// What can be taken, sorted by scope and thread.
    pub conversations: Vec<ForeignConversation>,
    /// Its templates for personalities, which belong to no conversation.
    pub presets: ForeignPresets,
    /// What belongs to no conversation that could be read.
    pub refused: Vec<Refusal>,
    /// How many entries are no messages, and have no place in a store.
    pub passed_over: usize,
}

impl ForeignConversations {
    pub(super) fn new(system: &'static str) -> Self {
        Self {
            system,
            conversations: Vec::new(),
            presets: ForeignPresets::default(),
            refused: Vec::new(),
            passed_over: 0,
        }
    }

    pub(super) fn sorted(mut self) -> Self {
        self.conversations.sort_by(|a, b| (&a.scope, &a.thread).cmp(&(&b.scope, &b.thread)));
        self.refused.sort_by(|a, b| a.file.cmp(&b.file));
        self
    }

    /// Leaves out the conversations that had expired when they were read, and says how many they were.
    pub fn skip_expired(&mut self) -> usize {
        let before = self.conversations.len();
        self.conversations.retain(|conversation| !conversation.expired);
        before - self.conversations.len()
    }
}

/// One conversation of another system.
#[derive(Debug)]
#[non_exhaustive]
pub struct ForeignConversation {
    /// Whose it is here.
    pub scope: Scope,
    /// The thread of it that all the messages are in; `None` where they are in several or none.
    pub thread: Option<String>,
    /// The messages.
    pub foreign: Foreign,
    /// Whether the system itself would no longer use it.
    pub expired: bool,
    /// Up to when the system leaves its messages out of prompts.
    pub cleared: Option<Timestamp>,
    /// Its saved windows.
    pub snapshots: Vec<ForeignSnapshot>,
    /// Its large data.
    pub artifacts: Vec<ForeignArtifact>,
    /// What is known of it otherwise.
    pub facts: ForeignFacts,
}

/// What the import of one conversation came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationReport {
    /// Whose it is here.
    pub scope: Scope,
    /// The thread of it that all the messages are in; `None` where they are in several or none.
    pub thread: Option<String>,
    /// What became of its messages, and what was refused, snapshots and artifacts included.
    pub messages: ImportReport,
    /// Whether the system itself would no longer use it: its messages are stored, but are no context, unless they are of
    /// a context with an expiry of its own, which is counted anew here. Of an export of
    /// Sottovoce, whether the conversation has expired by the limits here: it is hidden, and goes with the next message.
    pub expired: bool,
    /// How many snapshots were saved.
    pub snapshots: usize,
    /// How many artifacts were added.
    pub artifacts: usize,
}

impl ForeignConversation {
    pub(super) fn new(scope: Scope, system: &'static str) -> Self {
        Self {
            scope,
            thread: None,
            foreign: Foreign::new(system),
            expired: false,
            cleared: None,
            snapshots: Vec::new(),
            artifacts: Vec::new(),
            facts: ForeignFacts::default(),
        }
    }

    /// What [`import_into`](Self::import_into) would come to. Changes nothing.
    ///
    /// # Errors
    /// [`Error::OtherScope`] for a store of another scope; those of [`Foreign::preview`].
    pub async fn preview(self, store: &FileConversationStore) -> Result<ConversationReport> {
        let Self { scope, thread, foreign, expired, snapshots, artifacts, .. } = of(self, store)?;
        let (mut messages, known) = foreign.look(store).await?;
        let snapshots = snapshot::missing(store, snapshots).await?;
        let snapshots = snapshots.iter().filter(|snapshot| snapshot.has_any(&known)).count();
        let artifacts = artifact::look(store, artifacts, &mut messages.refused).await?;
        let messages = messages.sorted();
        Ok(ConversationReport { scope, thread, messages, expired, snapshots, artifacts })
    }

    /// Stores what the store has not had yet, calling `progress` as the messages go in: first how far the context was
    /// cleared, which never moves back, then the messages as [`Foreign::import_into`] does, then the snapshots of those
    /// that are there, the artifacts, and what the settings do not say yet, unless all messages were forgotten. An import
    /// that was interrupted is gone on with by importing again.
    ///
    /// # Errors
    /// [`Error::OtherScope`] for a store of another scope; those of [`Foreign::import_into`], of
    /// [`change_profile`](ConversationStore::change_profile), of [`save_snapshot`](ConversationStore::save_snapshot) and
    /// of [`add_artifact`](ConversationStore::add_artifact).
    pub async fn import_into(
        self,
        store: &FileConversationStore,
        progress: impl Fn(Progress) + Send,
    ) -> Result<ConversationReport> {
        let Self { scope, thread, foreign, expired, cleared, snapshots, artifacts, facts } =
            of(self, store)?;
        if let Some(at) = cleared {
            clear(store, at).await?;
        }
        let mut messages = foreign.import_into(store, progress).await?;
        let snapshots = snapshot::missing(store, snapshots).await?;
        let snapshots = snapshot::keep(store, snapshots, &mut messages.refused).await?;
        let artifacts = artifact::keep(store, artifacts, &mut messages.refused).await?;
        // Whoever forgot everything that was said meant what was known of it too.
        let is_forgotten = messages.forgotten > 0 && messages.taken + messages.already_there == 0;
        if !is_forgotten {
            facts.keep(store, &mut messages.refused).await?;
        }
        let messages = messages.sorted();
        Ok(ConversationReport { scope, thread, messages, expired, snapshots, artifacts })
    }
}

fn of(
    conversation: ForeignConversation,
    store: &FileConversationStore,
) -> Result<ForeignConversation> {
    if conversation.scope == **store.scope() { Ok(conversation) } else { Err(Error::OtherScope) }
}

/// Before the messages come, so that none of them is context in between.
pub(super) async fn clear(store: &FileConversationStore, at: Timestamp) -> Result<()> {
    let before = store.profile().await?.cleared;
    if before.is_none_or(|before| before.at < at) {
        store.change_profile(Box::new(move |profile| profile.clear(at, 0))).await?;
    }
    Ok(())
}
