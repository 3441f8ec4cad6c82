//! Many conversations of another system, each of which goes into a scope of its own.

use std::sync::Arc;

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::import::artifact::{self, ImportedArtifact};
use crate::import::cleared::ClearedMessages;
use crate::import::snapshot::{self, ImportedSnapshot};
use crate::import::{
    ImportReport, ImportedFacts, ImportedLimits, ImportedMessages, ImportedPresets, LeftOut,
    PassedOver, Refusal,
};
use crate::scope::Scope;
use crate::store::file_store::blocking;
use crate::store::{ConversationStore, FileConversationStore, Progress, Retention};

/// Snapshots of which nothing is left that could be saved.
const WITHOUT_MESSAGES: &str = "snapshots without a message that is here";

/// What was read of a system that keeps several conversations.
#[derive(Debug)]
#[non_exhaustive]
pub struct ImportedConversations {
    /// The system's short name.
    pub system: &'static str,
    /// What can be taken, sorted by scope and thread.
    pub conversations: Vec<ImportedConversation>,
    /// Its templates for personalities, which belong to no conversation.
    pub presets: ImportedPresets,
    /// What belongs to no conversation that could be read.
    pub refused: Vec<Refusal>,
    /// Entries that are no messages, and have no place in a store.
    pub passed_over: PassedOver,
}

impl ImportedConversations {
    /// An empty collection. `system` is the short name under which reports and records name the source.
    pub fn new(system: &'static str) -> Self {
        Self {
            system,
            conversations: Vec::new(),
            presets: ImportedPresets::default(),
            refused: Vec::new(),
            passed_over: PassedOver::default(),
        }
    }

    /// Sorts the conversations by scope and thread, and the refusals by name.
    #[must_use]
    pub fn sorted(mut self) -> Self {
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

    /// Has the conversations keep as much as the system did, and as long: what is over these limits is hidden as soon as
    /// it is stored, and removed with the next message. Otherwise the limits here hold.
    pub fn with_limits(&mut self) {
        self.conversations.iter_mut().for_each(|conversation| conversation.with_limits = true);
    }

    /// The limits that the system has for its conversations.
    pub fn limits(&self) -> ImportedLimits {
        self.conversations.first().map_or_else(ImportedLimits::default, |first| first.limits)
    }

    /// How many messages are over these limits, at least.
    pub fn over_limits(&self) -> usize {
        self.conversations.iter().map(ImportedConversation::over_limits).sum()
    }
}

/// One conversation of another system.
#[derive(Debug)]
#[non_exhaustive]
pub struct ImportedConversation {
    /// Whose it is here.
    pub scope: Scope,
    /// The thread of it that all the messages are in; `None` where they are in several or none.
    pub thread: Option<String>,
    /// The messages.
    pub messages: ImportedMessages,
    /// Whether the system itself would no longer use it.
    pub expired: bool,
    /// Up to when the system leaves its messages out of prompts.
    pub cleared: Option<Timestamp>,
    /// Its saved windows.
    pub snapshots: Vec<ImportedSnapshot>,
    /// Its large data.
    pub artifacts: Vec<ImportedArtifact>,
    /// What is known of it otherwise.
    pub facts: ImportedFacts,
    /// How much the system keeps of it, and for how long.
    pub limits: ImportedLimits,
    /// Whether these are to be the limits here.
    with_limits: bool,
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
    /// What of its settings was not taken over.
    pub left_out: Vec<LeftOut>,
    /// How much is kept here and for how long.
    pub limits: Retention,
    /// How many messages these limits hide, to be removed with the next one.
    pub hidden: u64,
}

impl ImportedConversation {
    /// A conversation without messages, to be stored under that scope.
    pub fn new(scope: Scope, system: &'static str) -> Self {
        Self {
            scope,
            thread: None,
            messages: ImportedMessages::new(system),
            expired: false,
            cleared: None,
            snapshots: Vec::new(),
            artifacts: Vec::new(),
            facts: ImportedFacts::default(),
            limits: ImportedLimits::default(),
            with_limits: false,
        }
    }

    fn over_limits(&self) -> usize {
        let (all, limits) = (self.messages.messages.len(), self.limits.retention);
        let most = limits.and_then(|limits| limits.max_messages);
        match (self.expired, most) {
            (true, _) if limits.is_some_and(|limits| limits.ttl_seconds.is_some()) => all,
            (_, Some(most)) => all.saturating_sub(most.get() as usize),
            _ => 0,
        }
    }

    /// What [`import_into`](Self::import_into) would come to. Changes nothing.
    ///
    /// # Errors
    /// [`Error::OtherScope`] for a store of another scope; those of [`ImportedMessages::preview`].
    pub async fn preview(self, store: &FileConversationStore) -> Result<ConversationReport> {
        let (limits, with_limits) = (self.limits, self.with_limits);
        let Self {
            scope, thread, messages: imported, expired, snapshots, artifacts, facts, ..
        } = of(self, store)?;
        let begun = Begun::with(store, limits, with_limits).await?;
        let (mut messages, known) = imported.look(store).await?;
        let snapshots = snapshot::missing(store, snapshots).await?;
        let all = snapshots.len();
        let snapshots = snapshots.iter().filter(|snapshot| snapshot.has_any(&known)).count();
        messages.passed_over.add(WITHOUT_MESSAGES, all - snapshots);
        let artifacts = artifact::look(store, artifacts, &mut messages.refused).await?;
        let left_out = begun.left_out(&facts, &messages);
        let messages = messages.sorted();
        let (limits, hidden) = begun.in_force(store).await?;
        Ok(ConversationReport {
            scope,
            thread,
            messages,
            expired,
            snapshots,
            artifacts,
            left_out,
            limits,
            hidden,
        })
    }

    /// Stores what the store has not had yet, calling `progress` as the messages go in: first how far the context was
    /// cleared, which never moves back, then the messages as [`ImportedMessages::import_into`] does, then the snapshots of those
    /// that are there, the artifacts, and what the settings do not say yet, unless all messages were forgotten. An import
    /// that was interrupted is gone on with by importing again.
    ///
    /// Nothing is removed, hidden or cleared that the source does not hold itself, and a persona comes only into a
    /// conversation that was empty or has messages of that source.
    ///
    /// # Errors
    /// [`Error::OtherScope`] for a store of another scope; those of [`ImportedMessages::import_into`], of
    /// [`change_profile`](ConversationStore::change_profile), of [`save_snapshot`](ConversationStore::save_snapshot) and
    /// of [`add_artifact`](ConversationStore::add_artifact).
    pub async fn import_into(
        self,
        store: &FileConversationStore,
        progress: impl Fn(Progress) + Send,
    ) -> Result<ConversationReport> {
        let (limits, with_limits) = (self.limits, self.with_limits);
        let Self {
            scope,
            thread,
            messages: imported,
            expired,
            cleared,
            snapshots,
            artifacts,
            mut facts,
            ..
        } = of(self, store)?;
        let begun = Begun::with(store, limits, with_limits).await?;
        let cleared = cleared.map(|at| ClearedMessages::until(at, &imported.messages));
        let cleared = cleared.unwrap_or_default().begin(store, &imported.messages).await?;
        let mut messages = imported.import_into(store, progress).await?;
        cleared.end(store).await?;
        let snapshots = snapshot::missing(store, snapshots).await?;
        let (all, refused) = (snapshots.len(), messages.refused.len());
        let snapshots = snapshot::keep(store, snapshots, &mut messages.refused).await?;
        let others = all - snapshots - (messages.refused.len() - refused);
        messages.passed_over.add(WITHOUT_MESSAGES, others);
        let artifacts = artifact::keep(store, artifacts, &mut messages.refused).await?;
        let left_out = begun.left_out(&facts, &messages);
        if left_out.contains(&LeftOut::Persona) {
            facts.character = None;
        }
        // Whoever forgot everything that was said meant what was known of it too.
        let is_forgotten = messages.forgotten > 0 && messages.taken + messages.already_there == 0;
        if !is_forgotten {
            facts.keep(store, &mut messages.refused).await?;
        }
        if with_limits {
            limits.set(store).await?;
        }
        let messages = messages.sorted();
        let (limits, hidden) = begun.in_force(store).await?;
        Ok(ConversationReport {
            scope,
            thread,
            messages,
            expired,
            snapshots,
            artifacts,
            left_out,
            limits,
            hidden,
        })
    }
}

/// What a conversation was before the import.
struct Begun {
    was_empty: bool,
    limits: ImportedLimits,
    /// Whether the source's limits are not to be those here.
    leaves_limits: bool,
}

impl Begun {
    async fn with(
        store: &FileConversationStore,
        limits: ImportedLimits,
        with_limits: bool,
    ) -> Result<Self> {
        let profile = store.profile().await?;
        let reader = Arc::clone(store.reader());
        Ok(Self {
            was_empty: blocking(move || reader.newest()).await?.last_seq == 0,
            limits,
            leaves_limits: !with_limits && !limits.are_in(&profile),
        })
    }

    fn left_out(&self, facts: &ImportedFacts, messages: &ImportReport) -> Vec<LeftOut> {
        let mut left_out = Vec::new();
        if self.leaves_limits {
            left_out.push(LeftOut::Limits(self.limits));
        }
        let is_its_own = self.was_empty || messages.already_there + messages.forgotten > 0;
        if facts.character.is_some() && !is_its_own {
            left_out.push(LeftOut::Persona);
        }
        left_out
    }

    /// The limits here, and how many messages they hide.
    async fn in_force(&self, store: &FileConversationStore) -> Result<(Retention, u64)> {
        let stats = store.stats().await?;
        let limits = self.limits.retention.filter(|_| !self.leaves_limits);
        Ok((limits.unwrap_or(stats.retention), stats.hidden))
    }
}

fn of(
    conversation: ImportedConversation,
    store: &FileConversationStore,
) -> Result<ImportedConversation> {
    if conversation.scope == **store.scope() { Ok(conversation) } else { Err(Error::OtherScope) }
}
