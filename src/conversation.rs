//! The orchestrator: an utterance is heard, sealed and answered; the answer is kept.

mod memory;
pub(crate) mod search;
mod summary;
mod turn;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedMutexGuard, watch};

pub use memory::{MemoryTools, Overview};
pub use summary::SummaryReport;
pub use turn::{Answer, AnswerEvent, Sentences, TurnOutcome, TurnReport};

use crate::clock::Clock;
use crate::context::rolling_window::DAY;
use crate::error::{Error, Result};
use crate::message::{ChatMessage, ChatRole, offset_minutes};
use crate::model::render::PromptRenderer;
use crate::model::{AnswerLimits, LanguageModel, ModelLimits};
use crate::prompt::{Prompt, PromptBuilder, Receipt, Utterance};
use crate::store::{ConversationStore, StoredMessage};
use turn::{LastUtterance, TurnState};

/// One conversation, ready for utterances. Clones are the same conversation.
///
/// With a model, [`ask`](Self::ask) does the whole turn: it seals the utterance, builds and sends the prompt, hands
/// over the answer as it comes, and seals what was spoken of it. Without one, a host calls [`hear`](Self::hear), asks a
/// model itself, and calls [`keep`](Self::keep), or [`keep_cut_off`](Self::keep_cut_off) if not all of it was spoken.
#[derive(Clone)]
pub struct Conversation {
    store: Arc<dyn ConversationStore>,
    builder: Arc<PromptBuilder>,
    clock: Arc<dyn Clock>,
    last_n: usize,
    window: Duration,
    thread: Option<String>,
    binding: Option<ModelBinding>,
    answer_room: Option<usize>,
    refuse_when_busy: bool,
    /// From which share of the budget on older messages are summarized, and after how long without a turn.
    summarize_at: Option<(f64, Duration)>,
    /// From how many bytes on a tool's result becomes an artifact.
    long_result: Option<usize>,
    /// How a model may read what its prompt does not hold, if it may.
    memory: Option<MemoryTools>,
    /// Counts the turns that have begun.
    turns: Arc<watch::Sender<u64>>,
    /// Held by the turn that goes on.
    state: Arc<Mutex<TurnState>>,
    /// Whether the turn that goes on is about to end, whatever the model does.
    ending: Arc<AtomicBool>,
    /// What a host with a model of its own has heard last and not kept an answer to.
    heard: LastUtterance,
}

/// Who answers, and in which form it is asked.
#[derive(Clone)]
struct ModelBinding {
    model: Arc<dyn LanguageModel>,
    renderer: Arc<dyn PromptRenderer>,
    limits: AnswerLimits,
}

/// What comes of an utterance: its sealed record, and the prompt for the model.
#[derive(Debug)]
#[non_exhaustive]
pub struct PreparedTurn {
    /// The utterance as it is kept.
    pub message: Arc<StoredMessage>,
    /// What to send to the model, once rendered.
    pub prompt: Prompt,
    /// The account of the prompt.
    pub receipt: Receipt,
}

impl Conversation {
    /// A conversation that keeps its messages in `store` and recalls about `last_n` of them a prompt. The builder
    /// is bound to the store's scope.
    pub fn new(
        store: Arc<dyn ConversationStore>,
        builder: PromptBuilder,
        clock: Arc<dyn Clock>,
        last_n: usize,
    ) -> Self {
        let builder = Arc::new(builder.for_store(Arc::clone(&store)));
        Self {
            store,
            builder,
            clock,
            last_n,
            window: DAY,
            thread: None,
            binding: None,
            answer_room: None,
            refuse_when_busy: false,
            summarize_at: None,
            long_result: None,
            memory: None,
            turns: Arc::default(),
            state: Arc::default(),
            ending: Arc::default(),
            heard: LastUtterance::default(),
        }
    }

    /// Has a model answer, asked in the renderer's form.
    #[must_use]
    pub fn with_model(
        mut self,
        model: Arc<dyn LanguageModel>,
        renderer: Arc<dyn PromptRenderer>,
    ) -> Self {
        self.binding = Some(ModelBinding { model, renderer, limits: AnswerLimits::default() });
        self
    }

    /// The same conversation without its model: prompts are for a model that the host asks itself. Turns of both wait
    /// for each other.
    #[must_use]
    pub fn without_model(mut self) -> Self {
        self.binding = None;
        self
    }

    /// How much one answer of the model may be, whoever serves it. It comes after [`with_model`](Self::with_model).
    ///
    /// Words past a limit are cut off, and the answer is kept as cut off at its greatest length. An answer without words,
    /// or with calls of functions, fails instead.
    #[must_use]
    pub fn answer_limits(mut self, limits: AnswerLimits) -> Self {
        if let Some(binding) = &mut self.binding {
            binding.limits = limits;
        }
        self
    }

    /// How many tokens of the model's window a prompt leaves free for the answer; a quarter of it unless set.
    #[must_use]
    pub fn answer_room(mut self, tokens: usize) -> Self {
        self.answer_room = Some(tokens);
        self
    }

    /// Whether an utterance is refused with [`Error::TurnInProgress`] while another one is being answered. Otherwise
    /// it waits for its turn.
    #[must_use]
    pub fn refuse_when_busy(mut self, refuse: bool) -> Self {
        self.refuse_when_busy = refuse;
        self
    }

    /// Has the model summarize older messages once a prompt fills this share of its budget, 0 to 1, or some of the
    /// history did not fit: after a turn, when no other one has begun for so long. See [`summarize`](Self::compact). Needs
    /// a runtime with a timer.
    #[must_use]
    pub fn summarize_at(mut self, share: f64, idle: Duration) -> Self {
        self.summarize_at = Some((share, idle));
        self
    }

    /// Has results of tools that are longer than so many bytes become artifacts, with a line about them in their place.
    #[must_use]
    pub fn long_result(mut self, bytes: usize) -> Self {
        self.long_result = Some(bytes);
        self
    }

    /// Lets a model that can call functions read artifacts and search what was said; see [`MemoryTools`].
    #[must_use]
    pub fn with_memory_tools(mut self, memory: MemoryTools) -> Self {
        self.memory = Some(memory);
        self
    }

    /// How far back a snapshot reaches in a conversation whose settings do not say it: a day unless told otherwise.
    #[must_use]
    pub fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// The same conversation in one of its threads: what is said from now on belongs to it, and prompts hold only what
    /// was said in it. Turns of several threads may go on at once.
    #[must_use]
    pub fn in_thread(mut self, thread: impl Into<String>) -> Self {
        let thread = thread.into();
        let builder = Arc::unwrap_or_clone(self.builder).in_thread(&thread);
        self.builder = Arc::new(builder);
        self.thread = Some(thread);
        self.apart()
    }

    /// The same conversation, told nothing of how a context's persona is to behave; its system prompt stays. Turns of both
    /// wait for each other.
    #[must_use]
    pub fn without_personality(mut self) -> Self {
        self.builder = Arc::new(Arc::unwrap_or_clone(self.builder).without_personality());
        self
    }

    /// The same conversation without anything that was said so far, as an agent's run wants it: nothing stored up to
    /// now is in its prompts, which their receipts say. What is said from now on is kept and remembered as ever.
    ///
    /// # Errors
    /// What keeps the store from being read.
    pub async fn starting_clean(mut self) -> Result<Self> {
        let last = self.store.read_tail(0).await?.last_seq;
        let builder = Arc::unwrap_or_clone(self.builder).starts_after(last);
        self.builder = Arc::new(builder);
        Ok(self.apart())
    }

    /// With turns of its own.
    fn apart(self) -> Self {
        Self {
            state: Arc::default(),
            ending: Arc::default(),
            turns: Arc::default(),
            heard: LastUtterance::default(),
            ..self
        }
    }

    /// Keeps what someone said just now, and builds the prompt for answering it. The utterance is durable before the
    /// prompt is built.
    pub async fn hear(&self, text: impl Into<String>) -> Result<PreparedTurn> {
        self.hear_message(self.message(ChatRole::User, text)).await
    }

    /// [`hear`](Self::hear) for an utterance with metadata, such as who spoke.
    ///
    /// # Errors
    /// [`Error::InvalidMessage`] for a message that is not a user's; nothing is kept then.
    pub async fn hear_message(&self, message: ChatMessage) -> Result<PreparedTurn> {
        let message = self.utterance(message)?;
        let mut state = self.turn().await?;
        self.keep_unfinished(&mut state).await?;
        state.off_record = false;
        let message = self.store.append_message(message).await?;
        self.heard.set(Some(Arc::clone(&message)));
        drop(state);
        let (prompt, receipt) = self.hosts_prompt(Arc::clone(&message).into()).await?;
        Ok(PreparedTurn { message, prompt, receipt })
    }

    /// [`hear`](Self::hear) for a client that may be trying again, as [`ask_once`](Self::ask_once) is.
    ///
    /// # Errors
    /// Those of [`hear`](Self::hear).
    pub async fn hear_once(
        &self,
        text: impl Into<String>,
        within: Duration,
    ) -> Result<PreparedTurn> {
        let message = self.utterance(self.message(ChatRole::User, text))?;
        let state = self.turn().await?;
        let repeated = self.repeated(&message, within).await?;
        drop(state);
        let Some(message) = repeated else { return self.hear_message(message).await };
        self.heard.set(Some(Arc::clone(&message)));
        let (prompt, receipt) = self.hosts_prompt(Arc::clone(&message).into()).await?;
        Ok(PreparedTurn { message, prompt, receipt })
    }

    /// The prompt that [`ask`](Self::ask) would send for an utterance, without keeping anything. The utterance is kept
    /// already, a message off the record, or just some words.
    ///
    /// The model is asked for its limits. If it cannot be reached, or there is none, the prompt is one for a model
    /// that cannot call functions.
    ///
    /// # Errors
    /// Those of [`PromptBuilder::build`].
    pub async fn prompt(&self, utterance: impl Into<Utterance>) -> Result<(Prompt, Receipt)> {
        let turn = utterance.into();
        let Some(ModelBinding { model, .. }) = &self.binding else {
            return self.hosts_prompt(turn).await;
        };
        let limits = model.limits().await.unwrap_or_default();
        self.prompt_within(model.name(), &limits, &turn).await
    }

    /// The prompt for a model that the host asks itself, and of which nothing is known.
    async fn hosts_prompt(&self, turn: Utterance) -> Result<(Prompt, Receipt)> {
        self.prompt_within("", &ModelLimits::default(), &turn).await
    }

    /// A message said now.
    pub fn message(&self, role: ChatRole, text: impl Into<String>) -> ChatMessage {
        let mut message = ChatMessage::new(role, text, &self.clock.now());
        message.thread_id.clone_from(&self.thread);
        message
    }

    /// Where the messages are kept.
    pub fn store(&self) -> &Arc<dyn ConversationStore> {
        &self.store
    }

    /// What a person said, with the local time.
    fn utterance(&self, mut message: ChatMessage) -> Result<ChatMessage> {
        if message.role != ChatRole::User {
            return Err(Error::InvalidMessage { reason: "an utterance has the role of the user" });
        }
        if message.offset_minutes.is_none() {
            // Whoever is heard is here, so the local time is this machine's.
            message.offset_minutes = offset_minutes(&self.clock.now());
        }
        if message.thread_id.is_none() {
            message.thread_id.clone_from(&self.thread);
        }
        Ok(message)
    }

    /// Waits until no other turn goes on, and keeps others waiting.
    async fn turn(&self) -> Result<OwnedMutexGuard<TurnState>> {
        self.heard.set(None);
        // Whatever the model does beside turns makes room for one.
        self.turns.send_modify(|turns| *turns += 1);
        let state = Arc::clone(&self.state);
        if !self.refuse_when_busy {
            return Ok(state.lock_owned().await);
        }
        match Arc::clone(&state).try_lock_owned() {
            Ok(free) => Ok(free),
            // One waits for what is about to end; for the next, it is that one's turn that goes on.
            Err(_) if self.ending.swap(false, Ordering::AcqRel) => Ok(state.lock_owned().await),
            Err(_) => Err(Error::TurnInProgress),
        }
    }

    /// Waits until no other turn goes on, for something that takes only a moment.
    async fn wait(&self) -> OwnedMutexGuard<TurnState> {
        let state = Arc::clone(&self.state).lock_owned().await;
        self.ends();
        state
    }

    /// From now on the turn that goes on needs no model any more, only a moment.
    fn ends(&self) {
        self.ending.store(true, Ordering::Release);
    }
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation")
            .field("builder", &self.builder)
            .field("last_n", &self.last_n)
            .field("model", &self.binding.as_ref().map(|binding| binding.model.name()))
            .finish_non_exhaustive()
    }
}
