//! Conversations: an utterance is stored, a model answers it, and the answer is stored.

mod builder;
mod memory;
mod metrics;
mod model_binding;
mod summary;
mod turn;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, OwnedMutexGuard, watch};

pub use crate::message::{CACHED_TOKENS, FIRST_WORD_MS, RECALLED, SEARCH_NOTE};
pub use builder::ConversationBuilder;
pub use memory::{ConversationOverview, MemoryTools};
pub use metrics::{ErrorKind, Metrics, TurnEnd};
pub use summary::SummaryReport;
pub use turn::{Answer, AnswerEvent, HostTurn, PreparedTurn, Sentences, TurnOutcome, TurnReport};

use crate::clock::Clock;
#[cfg(feature = "recall")]
use crate::context::recall::Recall;
use crate::error::{Error, Result};
use crate::message::{ChatMessage, ChatRole, offset_minutes};
use crate::model::ModelLimits;
use crate::prompt::{Prompt, Receipt, Utterance};
use crate::store::ConversationStore;
use model_binding::ModelBinding;
use turn::{LastUtterance, TurnState};

/// One conversation, ready for utterances. Clones are the same conversation.
///
/// With a model, [`ask`](Self::ask) does the whole turn: it stores the utterance, builds the prompt, asks the model,
/// hands over the answer as it arrives, and stores what was spoken of it. Without a model, a host calls
/// [`prepare_turn`](Self::prepare_turn), asks a model itself, and calls [`store_reply`](Self::store_reply), or
/// [`store_cut_off_reply`](Self::store_cut_off_reply) if not all of the answer was spoken.
#[derive(Clone)]
pub struct Conversation {
    store: Arc<dyn ConversationStore>,
    clock: Arc<dyn Clock>,
    /// What it was built from.
    parts: Arc<ConversationBuilder>,
    model: Option<ModelBinding>,
    /// Counts the turns that have begun.
    turns: Arc<watch::Sender<u64>>,
    /// Locked by the turn that is in progress.
    state: Arc<Mutex<TurnState>>,
    /// Whether the turn in progress is about to end, whatever the model does.
    ending: Arc<AtomicBool>,
    /// The utterance that a host with its own model has not answered yet.
    last_utterance: LastUtterance,
}

impl Conversation {
    /// Builds a conversation whose messages are in `store`.
    pub fn builder(store: Arc<dyn ConversationStore>) -> ConversationBuilder {
        ConversationBuilder::new(store)
    }

    /// Returns the same conversation in one of its threads. Later messages belong to the thread, and prompts hold only
    /// its messages. Turns of different threads can run at the same time.
    #[must_use]
    pub fn in_thread(mut self, thread: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.parts).prompts.thread = Some(thread.into());
        self.with_own_turns()
    }

    /// Returns the same conversation without the behaviour of its persona in prompts; the persona's system prompt stays.
    /// Turns of both wait for each other.
    #[must_use]
    pub fn without_personality(mut self) -> Self {
        Arc::make_mut(&mut self.parts).prompts.personality = false;
        self
    }

    /// Returns the same conversation without its history: no message stored so far is in later prompts, and their
    /// receipts say so. An agent starts a run this way. Later messages are stored and remembered as usual.
    ///
    /// # Errors
    /// Those of reading the store.
    pub async fn starting_clean(mut self) -> Result<Self> {
        let last = self.store.read_tail(0).await?.last_seq;
        Arc::make_mut(&mut self.parts).prompts.starts_after = Some(last);
        Ok(self.with_own_turns())
    }

    /// The index of what was said, in all threads. Prompts and searches share it.
    #[cfg(feature = "recall")]
    pub fn index(&self) -> &Arc<Recall> {
        &self.parts.recall
    }

    /// The same conversation with its own turns.
    fn with_own_turns(self) -> Self {
        Self {
            state: Arc::default(),
            ending: Arc::default(),
            turns: Arc::default(),
            last_utterance: LastUtterance::default(),
            ..self
        }
    }

    /// Returns the same conversation without its model: its prompts are for a model that the host asks itself. Turns of
    /// both wait for each other.
    #[must_use]
    pub fn without_model(mut self) -> Self {
        self.model = None;
        self
    }

    /// Builds the prompt that [`ask`](Self::ask) would send for an utterance, and stores nothing. The utterance is a
    /// stored message, a message off the record, or a text.
    ///
    /// The model is asked for its limits. If it cannot be reached, or there is none, the prompt is for a model that
    /// cannot call functions. The same store, utterance, limits and time give the same prompt. Neither the system
    /// prompt nor the utterance is ever cut; [`Receipt::is_over_budget`] tells when they alone are too long. If a
    /// provider of stable memory or of retrieved messages fails, it is left out and named in the receipt.
    ///
    /// # Errors
    /// [`Error::OtherScope`] for a stored utterance of another conversation, and those of reading the history.
    pub async fn prompt(&self, utterance: impl Into<Utterance>) -> Result<(Prompt, Receipt)> {
        let utterance = utterance.into();
        let Some(ModelBinding { model, .. }) = &self.model else {
            return self.host_prompt(utterance).await;
        };
        let limits = model.limits().await.unwrap_or_default();
        self.prompt_within(model.name(), &limits, &utterance).await
    }

    /// Builds the prompt for a model that the host asks itself and whose limits are unknown.
    async fn host_prompt(&self, utterance: Utterance) -> Result<(Prompt, Receipt)> {
        self.prompt_within("", &ModelLimits::default(), &utterance).await
    }

    /// Makes a message with the current time.
    pub fn message(&self, role: ChatRole, text: impl Into<String>) -> ChatMessage {
        let mut message = ChatMessage::new(role, text, &self.clock.now());
        message.thread_id.clone_from(&self.parts.prompts.thread);
        message
    }

    /// The store of the messages.
    pub fn store(&self) -> &Arc<dyn ConversationStore> {
        &self.store
    }

    /// The thread of the messages, if they are in one.
    fn thread(&self) -> Option<&str> {
        self.parts.prompts.thread.as_deref()
    }

    /// Checks that a message is a person's, and adds the local time and the thread.
    fn utterance(&self, mut message: ChatMessage) -> Result<ChatMessage> {
        if message.role != ChatRole::User {
            return Err(Error::InvalidMessage { reason: "an utterance has the role of the user" });
        }
        if message.offset_minutes.is_none() {
            // The speaker is near this machine, so its local time is the speaker's.
            message.offset_minutes = offset_minutes(&self.clock.now());
        }
        if message.thread_id.is_none() {
            message.thread_id.clone_from(&self.parts.prompts.thread);
        }
        Ok(message)
    }

    /// Waits until no other turn is in progress, and makes later turns wait.
    async fn turn(&self) -> Result<OwnedMutexGuard<TurnState>> {
        self.last_utterance.set(None);
        // Background work of the model stops when a turn begins.
        self.turns.send_modify(|turns| *turns += 1);
        let state = Arc::clone(&self.state);
        if !self.parts.refuse_when_busy {
            return Ok(state.lock_owned().await);
        }
        match Arc::clone(&state).try_lock_owned() {
            Ok(free) => Ok(free),
            // One caller waits for the turn that is about to end; the next caller finds that one's turn in progress.
            Err(_) if self.ending.swap(false, Ordering::AcqRel) => Ok(state.lock_owned().await),
            Err(_) => Err(Error::TurnInProgress),
        }
    }

    /// Whether a turn is in progress.
    pub fn is_busy(&self) -> bool {
        self.state.try_lock().is_err()
    }

    /// Waits until no other turn is in progress, for something that takes only a moment.
    async fn wait(&self) -> OwnedMutexGuard<TurnState> {
        let state = Arc::clone(&self.state).lock_owned().await;
        self.ends();
        state
    }

    /// Notes that the turn in progress no longer needs the model and ends in a moment.
    fn ends(&self) {
        self.ending.store(true, Ordering::Release);
    }

    fn binding(&self) -> Result<&ModelBinding> {
        self.model.as_ref().ok_or(Error::NoModel)
    }
}

debug_shows!(Conversation: parts);
