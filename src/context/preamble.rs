//! Providers of an agent's documents, and of the other activities that a host reports.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::{Context, ContextMessage, ContextProvider, ContextRequest, Placement};
use crate::error::Result;
use crate::message::{ChatMessage, ChatRole};

/// Provides an agent's documents, right after the system prompt. They seldom change, so the model's prompt cache
/// covers them.
#[derive(Clone, Default)]
pub struct DocumentsContextProvider {
    documents: Vec<(String, String)>,
}

impl DocumentsContextProvider {
    /// A provider without documents.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a document with a title.
    #[must_use]
    pub fn with(mut self, title: impl Into<String>, text: impl Into<String>) -> Self {
        self.documents.push((title.into(), text.into()));
        self
    }
}

impl fmt::Debug for DocumentsContextProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DocumentsContextProvider({} documents)", self.documents.len())
    }
}

#[async_trait]
impl ContextProvider for DocumentsContextProvider {
    fn placement(&self) -> Placement {
        Placement::Stable
    }

    async fn get_context(&self, request: &ContextRequest<'_>) -> Result<Context> {
        let texts = self.documents.iter().map(|(title, text)| format!("{title}:\n{}", text.trim()));
        Ok(Context::new(texts.map(|text| note(text, request)).collect(), "a document of the agent"))
    }
}

/// A thread of a conversation, or a process of the host, as the host describes it. `Debug` shows no words.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activity {
    /// A thread of the conversation.
    Thread {
        /// Its id, as messages carry it.
        id: String,
        /// Its state, such as `active`.
        state: String,
        /// Its subject.
        about: String,
    },
    /// A running or ended process.
    Process {
        /// Its id.
        id: String,
        /// Its state, such as `running`.
        state: String,
        /// Its task.
        about: String,
    },
}

impl Activity {
    /// A thread: its id, its state and its subject.
    pub fn thread(
        id: impl Into<String>,
        state: impl Into<String>,
        about: impl Into<String>,
    ) -> Self {
        Self::Thread { id: id.into(), state: state.into(), about: about.into() }
    }

    /// A process: its id, its state and its task.
    pub fn process(
        id: impl Into<String>,
        state: impl Into<String>,
        about: impl Into<String>,
    ) -> Self {
        Self::Process { id: id.into(), state: state.into(), about: about.into() }
    }

    fn in_words(&self) -> String {
        let (what, id, state, about) = match self {
            Self::Thread { id, state, about } => ("thread", id, state, about),
            Self::Process { id, state, about } => ("process", id, state, about),
        };
        format!("going on now: {what} {id} ({state}): {about}")
    }
}

impl fmt::Debug for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Thread { .. } => "Thread",
            Self::Process { .. } => "Process",
        })
    }
}

type Source = dyn Fn() -> Vec<Activity> + Send + Sync;

/// Provides the host's other activities: the other threads of the conversation, and running processes. The host
/// reports them for each prompt. They stand with the newest utterance, after the history, because they change from
/// turn to turn. Anywhere earlier, a change would make the model read everything after it again.
#[derive(Clone)]
pub struct ActivityContextProvider {
    source: Arc<Source>,
}

impl ActivityContextProvider {
    /// Calls `source` for each prompt.
    pub fn new(source: impl Fn() -> Vec<Activity> + Send + Sync + 'static) -> Self {
        Self { source: Arc::new(source) }
    }
}

impl fmt::Debug for ActivityContextProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActivityContextProvider").finish_non_exhaustive()
    }
}

#[async_trait]
impl ContextProvider for ActivityContextProvider {
    fn placement(&self) -> Placement {
        Placement::NewestTurn
    }

    async fn get_context(&self, request: &ContextRequest<'_>) -> Result<Context> {
        let is_own = |activity: &Activity| match activity {
            Activity::Thread { id, .. } => request.thread == Some(id),
            Activity::Process { .. } => false,
        };
        let activities = (self.source)();
        let others = activities.iter().filter(|activity| !is_own(activity));
        let notes = others.map(|activity| note(activity.in_words(), request));
        Ok(Context::new(notes.collect(), "going on besides"))
    }
}

fn note(text: String, request: &ContextRequest<'_>) -> ContextMessage {
    let now = request.now.unwrap_or(Timestamp::UNIX_EPOCH);
    ChatMessage::at(ChatRole::System, text, now).into()
}
