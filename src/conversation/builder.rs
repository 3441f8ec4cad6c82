//! The builder of a conversation: each part is named once.

use std::sync::Arc;
use std::time::Duration;

use super::model_binding::ModelBinding;
use super::turn::LastUtterance;
use super::{Conversation, MemoryTools, Metrics};
#[cfg(feature = "recall")]
use crate::context::recall::{Recall, RecallContextProvider, ScoreFloor};
use crate::context::rolling_window::DAY;
use crate::context::{ContextProvider, LastNContextProvider};
use crate::model::{AnswerLimits, LanguageModel};
use crate::prompt::PromptBuilder;
use crate::store::ConversationStore;

/// The default number of messages of history in a prompt.
const LAST_N: usize = 6;

/// The parts of a [`Conversation`]. Clock and redactor are those of the store.
///
/// Unless set, there is no system prompt, no model and no budget, and the history is the newest messages
/// [in blocks](LastNContextProvider::in_blocks), about six of them.
#[derive(Clone)]
#[must_use]
pub struct ConversationBuilder {
    pub(super) prompts: PromptBuilder,
    model: Option<Arc<dyn LanguageModel>>,
    answer_limits: AnswerLimits,
    pub(super) last_n: usize,
    /// How far back a snapshot reaches.
    pub(super) snapshot_window: Duration,
    pub(super) refuse_when_busy: bool,
    /// The share of the budget from which on older messages are summarized, and how long no turn must have begun.
    pub(super) summarize_at: Option<(f64, Duration)>,
    /// The length in bytes from which on a tool's result becomes an artifact.
    pub(super) long_result: Option<usize>,
    /// The functions by which a model reads what its prompt does not hold.
    pub(super) memory: Option<MemoryTools>,
    /// The index of what was said.
    #[cfg(feature = "recall")]
    pub(super) recall: Arc<Recall>,
    pub(super) metrics: Arc<Metrics>,
}

impl ConversationBuilder {
    pub(super) fn new(store: Arc<dyn ConversationStore>) -> Self {
        let history = Arc::new(LastNContextProvider::in_blocks());
        #[cfg(feature = "recall")]
        let recall = Arc::new(Recall::new(Arc::clone(&store)));
        Self {
            prompts: PromptBuilder::new(store, history),
            model: None,
            answer_limits: AnswerLimits::default(),
            last_n: LAST_N,
            snapshot_window: DAY,
            refuse_when_busy: false,
            summarize_at: None,
            long_result: None,
            memory: None,
            #[cfg(feature = "recall")]
            recall,
            metrics: Arc::default(),
        }
    }

    /// The system prompt of every prompt. A conversation's persona replaces it.
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.prompts.system = text.into();
        self
    }

    /// The model that answers.
    pub fn model(mut self, model: impl LanguageModel + 'static) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// The limits of one answer, for any model.
    ///
    /// Text past a limit is cut off, and the answer is stored as cut off for its length. An answer without text, or
    /// with tool calls, fails instead.
    pub fn answer_limits(mut self, limits: AnswerLimits) -> Self {
        self.answer_limits = limits;
        self
    }

    /// The provider of the history.
    pub fn history(mut self, provider: impl ContextProvider + 'static) -> Self {
        self.prompts.history = Arc::new(provider);
        self
    }

    /// Adds a provider of other context. If two providers return the same message, it is used once: at the earlier
    /// placement, and there from the earlier provider.
    pub fn context(mut self, provider: impl ContextProvider + 'static) -> Self {
        self.prompts.providers.push(Arc::new(provider));
        self
    }

    /// About how many messages of history a prompt holds; 6 unless set.
    pub fn last_n(mut self, messages: usize) -> Self {
        self.last_n = messages;
        self
    }

    /// The most tokens that a prompt may take, as estimated.
    pub fn budget(mut self, tokens: usize) -> Self {
        self.prompts.limits.budget = Some(tokens);
        self
    }

    /// The context window of the model in tokens, which prompt and answer share. Without it, the model is asked.
    pub fn model_window(mut self, tokens: usize) -> Self {
        self.prompts.limits.window = Some(tokens);
        self
    }

    /// How many tokens of the model's window a prompt leaves free for the answer, at most half of it; a quarter unless
    /// set. A persona's own limit comes first.
    pub fn answer_tokens(mut self, tokens: usize) -> Self {
        self.prompts.limits.answer = Some(tokens);
        self
    }

    /// Leaves every message up to this number out of prompts, whatever a provider returns.
    pub fn starts_after(mut self, seq: u64) -> Self {
        self.prompts.starts_after = Some(seq);
        self
    }

    /// Leaves exchanges out of the history if the utterance's metadata `confidence`, 0 to 1, is below this. The
    /// utterance being answered stays.
    pub fn min_confidence(mut self, confidence: f64) -> Self {
        self.prompts.min_confidence = Some(confidence);
        self
    }

    /// Adds a note to every prompt, for a renderer of the host's own.
    pub fn hint(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.prompts.hints.insert(key.into(), value.into());
        self
    }

    /// Refuses an utterance with [`Error::TurnInProgress`](crate::Error::TurnInProgress) while another one is being
    /// answered. Otherwise it waits.
    pub fn refuse_when_busy(mut self, refuse: bool) -> Self {
        self.refuse_when_busy = refuse;
        self
    }

    /// Lets the model summarize older messages once a prompt fills this share of its budget, 0 to 1, or some of the
    /// history did not fit. It does so after a turn, when no other turn has begun for this time. See
    /// [`Conversation::summarize`]. Needs a runtime with a timer.
    pub fn summarize_at(mut self, share: f64, idle: Duration) -> Self {
        self.summarize_at = Some((share, idle));
        self
    }

    /// Stores tool results of more than this many bytes as artifacts, with a line about them in the message.
    pub fn long_result(mut self, bytes: usize) -> Self {
        self.long_result = Some(bytes);
        self
    }

    /// Lets a model that can call functions read artifacts and search earlier messages; see [`MemoryTools`].
    pub fn memory_tools(mut self, memory: MemoryTools) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Brings what was said earlier and fits an utterance into its prompt, at most this many tokens of messages that
    /// reach the floor; see [`RecallContextProvider`].
    #[cfg(feature = "recall")]
    pub fn recall(self, tokens: usize, floor: ScoreFloor) -> Self {
        let provider = RecallContextProvider::new(Arc::clone(&self.recall));
        self.context(provider.tokens(tokens).floor(floor))
    }

    /// The index that the conversation will have.
    #[cfg(feature = "recall")]
    pub fn index(&self) -> &Arc<Recall> {
        &self.recall
    }

    /// How far back a snapshot reaches in a conversation without its own setting; a day unless set.
    pub fn snapshot_window(mut self, window: Duration) -> Self {
        self.snapshot_window = window;
        self
    }

    /// Counts turns together with other conversations that count here.
    pub fn metrics(mut self, metrics: Arc<Metrics>) -> Self {
        self.metrics = metrics;
        self
    }

    /// Builds the conversation. Reads nothing and asks no model yet.
    pub fn build(self) -> Conversation {
        let (model, limits) = (self.model.clone(), self.answer_limits);
        Conversation {
            store: Arc::clone(&self.prompts.store),
            clock: self.prompts.store.clock(),
            parts: Arc::new(self),
            model: model.map(|model| ModelBinding { model, limits }),
            turns: Arc::default(),
            state: Arc::default(),
            ending: Arc::default(),
            last_utterance: LastUtterance::default(),
        }
    }
}

debug_shows!(ConversationBuilder as it:
    prompts, last_n, model = it.model.as_ref().map(|model| model.name())
);
