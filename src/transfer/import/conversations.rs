//! Conversations of another system. Each goes into a scope of its own.

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::scope::Scope;
use crate::store::read::reader::Reader;
use crate::store::{ConversationStore, FileConversationStore, Progress, Retention};
use crate::transfer::import::artifact::{self, ImportedArtifact};
use crate::transfer::import::cleared::{self, ClearedMessages};
use crate::transfer::import::snapshot::{self, ImportedSnapshot};
use crate::transfer::import::{
    ImportReport, ImportedFacts, ImportedLimits, ImportedMessages, ImportedPresets, LeftOut,
    PassedOver, Refusal,
};

/// How reports count snapshots without any message that could be saved.
const WITHOUT_MESSAGES: &str = "snapshots without a message that is here";

/// What a reader has read of a system that keeps several conversations.
#[derive(Debug)]
#[non_exhaustive]
pub struct ImportedConversations {
    /// The system's short name.
    pub system: &'static str,
    /// The conversations that can be imported.
    pub conversations: Vec<ImportedConversation>,
    /// The system's presets, which belong to no conversation.
    pub presets: ImportedPresets,
    /// Refused files and records that belong to none of these conversations.
    pub refused: Vec<Refusal>,
    /// Entries that a store has no place for.
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

    /// Drops the conversations that had expired when they were read, and returns how many.
    pub fn skip_expired(&mut self) -> usize {
        let before = self.conversations.len();
        self.conversations.retain(|conversation| !conversation.expired);
        before - self.conversations.len()
    }

    /// Applies the system's limits to the conversations. Messages that exceed them are hidden as soon as they are
    /// stored, and deleted with the next append. Without this, the store's own limits stay.
    pub fn with_limits(&mut self) {
        self.conversations.iter_mut().for_each(|conversation| conversation.with_limits = true);
    }

    /// The system's limits for its conversations.
    pub fn limits(&self) -> ImportedLimits {
        self.conversations.first().map_or_else(ImportedLimits::default, |first| first.limits)
    }

    /// How many messages exceed these limits, at least.
    pub fn over_limits(&self) -> usize {
        self.conversations.iter().map(ImportedConversation::over_limits).sum()
    }
}

/// One conversation of another system.
#[derive(Debug)]
pub struct ImportedConversation {
    /// The scope under which it is stored.
    pub scope: Scope,
    /// The thread of all its messages; `None` for several threads or none.
    pub thread: Option<String>,
    /// The messages.
    pub messages: ImportedMessages,
    /// Whether it has expired by the system's own rules.
    pub expired: bool,
    /// When it was cleared: the system leaves messages up to that time out of prompts.
    pub cleared: Option<Timestamp>,
    /// Its snapshots.
    pub snapshots: Vec<ImportedSnapshot>,
    /// Its artifacts.
    pub artifacts: Vec<ImportedArtifact>,
    /// Its title, persona and other facts.
    pub facts: ImportedFacts,
    /// How many of its messages the system keeps, and for how long.
    pub limits: ImportedLimits,
    /// Whether to apply these limits here.
    with_limits: bool,
}

/// The result of importing one conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversationReport {
    /// The scope under which it is stored.
    pub scope: Scope,
    /// The thread of all its messages; `None` for several threads or none.
    pub thread: Option<String>,
    /// The result for its messages, and everything that was refused, snapshots and artifacts included.
    pub messages: ImportReport,
    /// Whether the conversation has expired. By another system's rules: its messages are stored, but prompts leave them
    /// out, unless the conversation is a persona's, whose expiry starts anew. By the limits here, for a backup: its
    /// messages are hidden, and deleted with the next append.
    pub expired: bool,
    /// The number of snapshots that were saved.
    pub snapshots: usize,
    /// The number of artifacts that were added.
    pub artifacts: usize,
    /// The settings that were not imported.
    pub left_out: Vec<LeftOut>,
    /// The limits of the conversation here.
    pub limits: Retention,
    /// The number of messages that these limits hide. They are deleted with the next append.
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

    /// Returns what [`import_into`](Self::import_into) would do, and changes nothing.
    ///
    /// # Errors
    /// [`Error::OtherScope`] for a store of another scope; those of [`ImportedMessages::preview`].
    pub async fn preview(self, store: &FileConversationStore) -> Result<ConversationReport> {
        let mut begun = Begun::with(&self, store).await?;
        let report = &mut begun.report;
        let (messages, known) = self.messages.look(store).await?;
        report.messages = messages;
        let snapshots = snapshot::missing(store, self.snapshots).await?;
        report.snapshots = snapshots.iter().filter(|snapshot| snapshot.has_any(&known)).count();
        let others = snapshots.len() - report.snapshots;
        report.messages.passed_over.add(WITHOUT_MESSAGES, others);
        let refused = &mut report.messages.refused;
        report.artifacts = artifact::look(store, self.artifacts, refused).await?;
        begun.leave_out(&self.facts);
        begun.end(store).await
    }

    /// Imports the conversation, calling `progress` as the messages are stored. The order is: the clear marker, which
    /// never moves back; the messages, as in [`ImportedMessages::import_into`]; snapshots of messages that are there;
    /// artifacts; settings that the conversation does not have yet, unless all its messages were forgotten. Import
    /// again to continue an import that was interrupted.
    ///
    /// Nothing is deleted, hidden or cleared that is not in the source. A conversation gets the persona only if it was
    /// empty or has messages of this source.
    ///
    /// # Errors
    /// [`Error::OtherScope`] for a store of another scope; those of [`ImportedMessages::import_into`], of
    /// [`change_profile`](ConversationStore::change_profile), of [`save_snapshot`](ConversationStore::save_snapshot) and
    /// of [`add_artifact`](crate::store::ArtifactStore::add_artifact).
    pub async fn import_into(
        self,
        store: &FileConversationStore,
        progress: impl Fn(Progress) + Send,
    ) -> Result<ConversationReport> {
        let mut begun = Begun::with(&self, store).await?;
        let Self { messages, cleared, mut facts, .. } = self;
        let cleared = cleared.map(|at| ClearedMessages::until(at, &messages.messages));
        let rest = cleared.unwrap_or_default().begin(store, &messages.messages).await?;
        let imported = messages.import_into(store, progress).await;
        // What was stored before an error is cleared too.
        let ended = cleared::hide(store, rest).await;
        let report = &mut begun.report;
        report.messages = imported?;
        ended?;
        let snapshots = snapshot::missing(store, self.snapshots).await?;
        let refused = &mut report.messages.refused;
        let (all, before) = (snapshots.len(), refused.len());
        report.snapshots = snapshot::keep(store, snapshots, refused).await?;
        let others = all - report.snapshots - (refused.len() - before);
        report.artifacts = artifact::keep(store, self.artifacts, refused).await?;
        report.messages.passed_over.add(WITHOUT_MESSAGES, others);
        begun.leave_out(&facts);
        let ConversationReport { messages, left_out, .. } = &mut begun.report;
        if left_out.contains(&LeftOut::Persona) {
            facts.assigned_persona = None;
        }
        // A person who forgot all messages meant the title and notes too.
        let is_forgotten = messages.forgotten > 0 && messages.taken + messages.already_there == 0;
        if !is_forgotten {
            facts.keep(store, &mut messages.refused).await?;
        }
        if self.with_limits {
            self.limits.set(store).await?;
        }
        begun.end(store).await
    }
}

/// An import in progress.
struct Begun {
    /// Whether the conversation was empty before.
    was_empty: bool,
    limits: ImportedLimits,
    /// Whether the source's limits are left out.
    leaves_limits: bool,
    report: ConversationReport,
}

impl Begun {
    async fn with(
        conversation: &ImportedConversation,
        store: &FileConversationStore,
    ) -> Result<Self> {
        if conversation.scope != **store.scope() {
            return Err(Error::OtherScope);
        }
        let (limits, profile) = (conversation.limits, store.profile().await?);
        Ok(Self {
            was_empty: store.read_with(Reader::newest).await?.last_seq == 0,
            limits,
            leaves_limits: !conversation.with_limits && !limits.are_in(&profile),
            report: ConversationReport {
                scope: conversation.scope.clone(),
                thread: conversation.thread.clone(),
                messages: ImportReport::default(),
                expired: conversation.expired,
                snapshots: 0,
                artifacts: 0,
                left_out: Vec::new(),
                limits: Retention::FOREVER,
                hidden: 0,
            },
        })
    }

    /// Notes what is left out, now that the messages are known.
    fn leave_out(&mut self, facts: &ImportedFacts) {
        let ConversationReport { messages, left_out, .. } = &mut self.report;
        if self.leaves_limits {
            left_out.push(LeftOut::Limits(self.limits));
        }
        let is_its_own = self.was_empty || messages.already_there + messages.forgotten > 0;
        if facts.assigned_persona.is_some() && !is_its_own {
            left_out.push(LeftOut::Persona);
        }
    }

    /// The report, with the limits here and how many messages they hide.
    async fn end(self, store: &FileConversationStore) -> Result<ConversationReport> {
        let stats = store.stats().await?;
        let limits = self.limits.retention.filter(|_| !self.leaves_limits);
        let (limits, hidden) = (limits.unwrap_or(stats.retention), stats.hidden);
        let messages = self.report.messages.sorted();
        Ok(ConversationReport { messages, limits, hidden, ..self.report })
    }
}
