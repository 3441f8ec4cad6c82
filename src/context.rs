//! Context for prompts: providers supply messages and say where in the prompt they belong.

pub(crate) mod blocks;
pub(crate) mod confidence;
mod history;
mod last_n;
mod persona_history;
mod prune;
#[cfg(feature = "recall")]
pub mod recall;
#[cfg(any(feature = "config", feature = "recall"))]
pub(crate) mod recall_sources;
mod retrieval;
pub(crate) mod rolling_window;
pub(crate) mod tokens;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use zeroize::Zeroizing;

pub use last_n::LastNContextProvider;
pub use persona_history::PersonaHistoryProvider;
pub use prune::{
    OldestStrategy, PruneDecision, PrunePlan, PruneStrategy, RelevanceStrategy, Score,
};
pub use retrieval::{Embedder, Query, RetrievalContextProvider, Retriever};
pub use rolling_window::RollingWindowProvider;
pub use tokens::TokenRates;

use crate::error::Result;
use crate::message::ChatMessage;
use crate::scope::Scope;
use crate::store::{ConversationStore, Finding, Profile, StoredMessage};

/// The place of a provider's messages in the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Placement {
    /// Right after the system prompt: what rarely changes, such as a summary or pinned facts.
    Stable,
    /// The conversation so far.
    History,
    /// With the utterance being answered: results that were retrieved for it.
    NewestTurn,
}

/// A request for context, for one prompt. `Debug` shows no words.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct ContextRequest<'a> {
    /// The store of the conversation.
    pub store: &'a Arc<dyn ConversationStore>,
    /// The utterance being answered, for providers that search.
    pub current_prompt: &'a str,
    /// The number of messages wanted. 0 asks for none.
    pub n: usize,
    /// The number of the utterance, if it is stored already. Only earlier messages are context.
    pub before: Option<u64>,
    /// Only messages with a higher number are context. A conversation that started clean has the number of the last
    /// message before that.
    pub after: u64,
    /// The thread whose history is wanted; `None` for messages outside all threads.
    pub thread: Option<&'a str>,
    /// The time that the prompt is for; `None` means the time of the newest message.
    pub now: Option<Timestamp>,
    /// The settings of the conversation, if the prompt holds the summary in them. The messages that the summary
    /// replaces are not context then.
    pub profile: Option<&'a Arc<Profile>>,
    /// The numbers of the messages that other providers have offered for this prompt already.
    pub offered: Option<&'a HashSet<u64>>,
}

impl<'a> ContextRequest<'a> {
    /// Asks for `n` messages for an utterance that is not stored.
    pub fn new(store: &'a Arc<dyn ConversationStore>, current_prompt: &'a str, n: usize) -> Self {
        Self {
            store,
            current_prompt,
            n,
            before: None,
            after: 0,
            thread: None,
            now: None,
            profile: None,
            offered: None,
        }
    }
}

debug_shows!(ContextRequest<'_> as it:
    current_prompt_bytes = it.current_prompt.len(), n, before, after, now
);

/// The messages of a provider for one prompt.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Context {
    /// The messages, in the order in which the model reads them.
    pub messages: Vec<ContextMessage>,
    /// The reason for this choice, for the receipt.
    pub why: String,
    /// The heading above the messages if they stand with the newest turn, such as `State of the house`. `None` means
    /// `Possibly relevant`. At other placements there is no heading.
    pub heading: Option<Arc<str>>,
    /// Messages that fit and were left out all the same, each with its reason.
    pub left_out: Vec<ContextMessage>,
    /// Messages that were left out because they could not be read.
    pub skipped: Vec<Finding>,
}

impl Context {
    /// A context of these messages, chosen for this reason.
    pub fn new(messages: Vec<ContextMessage>, why: impl Into<String>) -> Self {
        Self { messages, why: why.into(), ..Self::default() }
    }

    /// Sets another heading than `Possibly relevant`.
    #[must_use]
    pub fn under(mut self, heading: impl Into<Arc<str>>) -> Self {
        self.heading = Some(heading.into());
        self
    }
}

/// A message for a prompt: a stored one, or one that a host made, such as a retrieved snippet.
#[derive(Debug, Clone)]
pub struct ContextMessage {
    source: Source,
    heading: Option<Arc<str>>,
    /// Why it was chosen, if its provider has a reason for each message.
    why: Option<Arc<str>>,
    quoting: Option<Quoting>,
}

/// A reason that quotes words of the utterance, for people alone. `Debug` shows none.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Quoting(pub(crate) Zeroizing<String>);

impl fmt::Debug for Quoting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Quoting(..)")
    }
}

#[derive(Debug, Clone)]
enum Source {
    Stored(Arc<StoredMessage>),
    Supplied(Arc<ChatMessage>),
}

impl ContextMessage {
    /// The message itself.
    pub fn message(&self) -> &ChatMessage {
        match &self.source {
            Source::Stored(stored) => &stored.message,
            Source::Supplied(message) => message,
        }
    }

    /// The heading above it, if its provider set one.
    pub fn heading(&self) -> Option<&str> {
        self.heading.as_deref()
    }

    pub(crate) fn under(mut self, heading: Option<&Arc<str>>) -> Self {
        self.heading = heading.map(Arc::clone);
        self
    }

    /// Gives the reason for choosing this message, in place of its context's. It is shown in receipts, so it holds no
    /// words of the conversation.
    #[must_use]
    pub fn because(mut self, why: impl Into<Arc<str>>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// Gives the same reason with words of the utterance.
    #[cfg(feature = "recall")]
    pub(crate) fn quoting(mut self, why: String) -> Self {
        self.quoting = Some(Quoting(Zeroizing::new(why)));
        self
    }

    /// The reason with words of the utterance, if it has one.
    pub(crate) fn quotes(&self) -> Option<Quoting> {
        self.quoting.clone()
    }

    /// The reason for choosing this message, if it has one of its own.
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// The same message with other text.
    pub(crate) fn with_words(&self, words: &str) -> Self {
        let source = match &self.source {
            Source::Stored(stored) => {
                let mut stored = StoredMessage::clone(stored);
                words.clone_into(&mut stored.message.content);
                Source::Stored(Arc::new(stored))
            }
            Source::Supplied(message) => {
                let mut message = ChatMessage::clone(message);
                words.clone_into(&mut message.content);
                Source::Supplied(Arc::new(message))
            }
        };
        Self { source, ..self.clone() }
    }

    /// The time by which it is ordered.
    pub(crate) fn ordered_at(&self) -> Timestamp {
        match &self.source {
            Source::Stored(stored) => stored.ordered_at(),
            Source::Supplied(message) => message.timestamp,
        }
    }

    /// Its number in the conversation, if it is from the store.
    pub fn seq(&self) -> Option<u64> {
        match &self.source {
            Source::Stored(stored) => Some(stored.seq),
            Source::Supplied(_) => None,
        }
    }

    /// The stored message, if it is from a store.
    pub(crate) fn stored(&self) -> Option<&StoredMessage> {
        match &self.source {
            Source::Stored(stored) => Some(stored),
            Source::Supplied(_) => None,
        }
    }

    /// The conversation that it is from, if it is from a store.
    pub fn scope(&self) -> Option<&Scope> {
        match &self.source {
            Source::Stored(stored) => Some(&stored.scope),
            Source::Supplied(_) => None,
        }
    }
}

impl From<Arc<StoredMessage>> for ContextMessage {
    fn from(stored: Arc<StoredMessage>) -> Self {
        Self { source: Source::Stored(stored), heading: None, why: None, quoting: None }
    }
}

impl From<ChatMessage> for ContextMessage {
    fn from(message: ChatMessage) -> Self {
        Self {
            source: Source::Supplied(Arc::new(message)),
            heading: None,
            why: None,
            quoting: None,
        }
    }
}

/// A source of context, such as the history or a search.
#[async_trait]
pub trait ContextProvider: Send + Sync {
    /// The place of the provider's messages in every prompt.
    fn placement(&self) -> Placement;

    /// The tokens that stay free for the provider's messages in every prompt, whether it returns any or not. Only for
    /// providers at [`Placement::NewestTurn`], which are asked when the history is settled.
    fn reserved_tokens(&self) -> usize {
        0
    }

    /// Returns messages for one prompt. The same request to the same store must return the same messages. Recall does while
    /// as many messages are understood.
    async fn get_context(&self, request: &ContextRequest<'_>) -> Result<Context>;
}

#[async_trait]
impl<P: ContextProvider + ?Sized> ContextProvider for Arc<P> {
    fn placement(&self) -> Placement {
        (**self).placement()
    }

    fn reserved_tokens(&self) -> usize {
        (**self).reserved_tokens()
    }

    async fn get_context(&self, request: &ContextRequest<'_>) -> Result<Context> {
        (**self).get_context(request).await
    }
}
