//! Starts a turn with the model, and ends the conversation.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

use super::task::TurnTask;
use crate::context::ContextMessage;
use crate::conversation::Conversation;
use crate::conversation::turn::answer::{Answer, TurnOutcome};
use crate::conversation::turn::state::{PendingTurn, SpokenText, TurnState, Unfinished, beginning};
use crate::error::{Error, Result, joined};
use crate::message::{ARTIFACT, ChatMessage, ChatRole, TOOL, ToolCall, texts};
use crate::prompt::Utterance;
use crate::store::StoredMessage;

/// How many messages are read to find an utterance and what followed it.
const A_LONG_EXCHANGE: usize = 256;

impl Conversation {
    /// Stores an utterance with the current time, and asks the model to answer it.
    ///
    /// # Errors
    /// Those of [`ConversationStore::append_message`](crate::ConversationStore::append_message), [`Error::NoModel`],
    /// [`Error::TurnInProgress`], and [`Error::InvalidMessage`] for a text without words. The utterance is not stored
    /// then. Later errors come through the answer, and the utterance stays stored. If the utterance is forgotten
    /// before the answer ends, the answer ends with [`Error::UtteranceForgotten`] and is not stored.
    pub async fn ask(&self, text: impl Into<String>) -> Result<Answer> {
        self.ask_message(self.message(ChatRole::User, text)).await
    }

    /// [`ask`](Self::ask) for an utterance with metadata, such as the speaker.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask), and [`Error::InvalidMessage`] for a message that is not a user's.
    pub async fn ask_message(&self, message: ChatMessage) -> Result<Answer> {
        let message = with_words(self.utterance(message)?)?;
        let mut state = self.begin().await?;
        self.keep_unfinished(&mut state).await?;
        let stored = self.store.append_message(message).await?;
        self.answer(state, PendingTurn::new(Utterance::Stored(stored), Vec::new()))
    }

    /// [`ask`](Self::ask) for a client that may be retrying. If the newest message is the same utterance, was said
    /// within this time and has no answer, it is answered and not stored twice.
    ///
    /// # Errors
    /// Those of [`ask`](Self::ask).
    pub async fn ask_once(&self, text: impl Into<String>, within: Duration) -> Result<Answer> {
        let message = with_words(self.utterance(self.message(ChatRole::User, text))?)?;
        let mut state = self.begin().await?;
        let repeated = self.repeated(&message, within).await?;
        let waits = |pending: &mut PendingTurn, seq| matches!(&pending.turn, Utterance::Stored(stored) if stored.seq == seq);
        if let Some(repeated) = &repeated
            && let Some(pending) = state.pending.take_if(|pending| waits(pending, repeated.seq))
        {
            return self.answer(state, pending);
        }
        self.keep_unfinished(&mut state).await?;
        let stored = match repeated {
            Some(stored) => stored,
            None => self.store.append_message(message).await?,
        };
        self.answer(state, PendingTurn::new(Utterance::Stored(stored), Vec::new()))
    }

    /// The newest message, if it is the same utterance, was said within this time and has no answer.
    pub(crate) async fn repeated(
        &self,
        message: &ChatMessage,
        within: Duration,
    ) -> Result<Option<Arc<StoredMessage>>> {
        let newest = self.store.read_thread(self.thread(), 1).await?.messages.pop();
        let masked = self.parts.prompts.masked(message.clone());
        let is_same = |said: &ChatMessage| {
            let age = message.timestamp.duration_since(said.timestamp).unsigned_abs();
            let is_alike = said.content == message.content || said.content == masked.content;
            said.role == ChatRole::User && is_alike && age <= within
        };
        match newest.filter(|newest| is_same(&newest.message)) {
            Some(newest) if !self.is_over(&newest).await? => Ok(Some(newest)),
            _ => Ok(None),
        }
    }

    /// Asks the model to answer an utterance. Stores neither the utterance nor the answer.
    ///
    /// # Errors
    /// Those of [`ask_message`](Self::ask_message).
    pub async fn ask_off_record(&self, message: ChatMessage) -> Result<Answer> {
        let message = with_words(self.utterance(message)?)?;
        let mut state = self.begin().await?;
        self.keep_unfinished(&mut state).await?;
        self.answer(state, PendingTurn::new(message.into(), Vec::new()))
    }

    /// Asks again about an unanswered utterance without storing it twice: the last turn's utterance if that turn
    /// failed or was interrupted, else the newest stored one without a whole answer.
    ///
    /// # Errors
    /// [`Error::NothingToRetry`] if there is none.
    pub async fn retry(&self) -> Result<Answer> {
        let mut state = self.begin().await?;
        self.drop_forgotten(&mut state).await;
        if let Some(PendingTurn { turn: Utterance::Stored(stored), .. }) = &state.pending
            && self.is_over(stored).await?
        {
            self.keep_unfinished(&mut state).await?;
        }
        let pending = match state.pending.take() {
            Some(pending) => pending,
            None if state.off_record => return Err(Error::NothingToRetry),
            None => self.unanswered().await?,
        };
        self.answer(state, pending)
    }

    /// Continues a turn in which the model called functions: stores the calls with their results, one result for each
    /// call in the order of the calls, and asks the model to continue.
    ///
    /// # Errors
    /// [`Error::ToolResults`] if the numbers of results and calls differ, and [`Error::UtteranceForgotten`] if the
    /// utterance was forgotten meanwhile. Nothing is stored then.
    pub async fn tool_results(&self, results: Vec<String>) -> Result<Answer> {
        let conversation = self.clone();
        detached(async move { conversation.go_on(results).await }).await
    }

    async fn go_on(&self, results: Vec<String>) -> Result<Answer> {
        let mut state = self.begin().await?;
        let (called, results) = match &state.pending {
            Some(PendingTurn { unfinished: Unfinished::Calls(called), .. }) => {
                (called, self.results(called, results)?)
            }
            _ => return Err(Error::ToolResults { called: 0, given: results.len() }),
        };
        let mut brought = vec![called.clone()];
        let is_stored =
            matches!(&state.pending, Some(PendingTurn { turn: Utterance::Stored(_), .. }));
        for result in results {
            brought.push(if is_stored { self.shortened(result).await? } else { result });
        }
        let kept: Vec<ContextMessage> = match is_stored {
            true => self.keep_calls(&mut state, brought).await?,
            false => {
                brought.into_iter().map(|said| self.parts.prompts.masked(said).into()).collect()
            }
        };
        let Some(PendingTurn { turn, mut since, .. }) = state.pending.take() else {
            return Err(Error::NothingToRetry);
        };
        since.extend(kept);
        self.answer(state, PendingTurn::new(turn, since))
    }

    /// Stores function calls with their results, unless the utterance was forgotten meanwhile.
    pub(super) async fn keep_calls(
        &self,
        state: &mut TurnState,
        brought: Vec<ChatMessage>,
    ) -> Result<Vec<ContextMessage>> {
        let Some(PendingTurn { turn: Utterance::Stored(utterance), .. }) = &state.pending else {
            return Err(Error::NothingToRetry);
        };
        let artifacts =
            brought.iter().filter_map(|message| message.metadata.get(ARTIFACT).cloned());
        let artifacts: Vec<String> = artifacts.collect();
        match self.store.append_answers(brought, utterance).await {
            Ok(stored) => Ok(stored.into_iter().map(ContextMessage::from).collect()),
            Err(error @ Error::UtteranceForgotten) => {
                state.pending = None;
                state.request = None;
                if let Some(store) = self.store.artifact_store() {
                    store.delete_artifacts(&artifacts).await?;
                }
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Loads the model and lets it read the beginning of the next prompt. A host calls this when it hears its wake
    /// word, so that the answer begins sooner.
    ///
    /// # Errors
    /// Those of the model.
    pub async fn warm_up(&self) -> Result<()> {
        let model = &self.binding()?.model;
        let limits = model.limits().await?;
        let prompt = {
            let state = Arc::clone(&self.state);
            let mut state = match Arc::clone(&state).try_lock_owned() {
                Ok(free) => free,
                Err(_) if self.ending.load(Ordering::Acquire) => state.lock_owned().await,
                // The turn in progress already makes the model read more than could be prepared.
                Err(_) => return Ok(()),
            };
            self.ends();
            let nothing = Utterance::from("");
            state.prompt(self, model.name(), &limits, (&nothing, &[])).await?.0
        };
        // The next utterance can be stored meanwhile.
        model.warm_up(&prompt).await
    }

    /// Waits for the turn in progress, and stores the spoken text of the last one. A host calls it before it ends.
    ///
    /// It waits as long as an [`Answer`] is neither at its end nor dropped.
    ///
    /// # Errors
    /// Those of storing the text.
    pub async fn close(&self) -> Result<()> {
        let mut state = self.wait().await;
        self.keep_unfinished(&mut state).await
    }

    /// Replaces an answer by its beginning, because no more of it was heard.
    pub(super) async fn shorten(&self, kept: TurnOutcome, chars: usize) -> Result<TurnOutcome> {
        let Some(stored) = &kept.message else {
            let mut state = self.wait().await;
            if let Some(PendingTurn { unfinished: Unfinished::Calls(called), .. }) =
                &mut state.pending
                && let Some(words) = beginning(&called.content, chars)
            {
                called.content = words;
            }
            return Ok(kept);
        };
        let Some(words) = beginning(&stored.message.content, chars) else { return Ok(kept) };
        let (conversation, seq) = (self.clone(), stored.seq);
        let message =
            detached(async move { conversation.replace_newest(seq, words).await }).await?;
        Ok(TurnOutcome { message, report: kept.report })
    }

    async fn replace_newest(&self, seq: u64, words: String) -> Result<Option<Arc<StoredMessage>>> {
        let _between = self.wait().await;
        let messages = self.store.read_thread(self.thread(), A_LONG_EXCHANGE).await?.messages;
        let Some(newest) = messages.last().filter(|newest| newest.seq == seq) else {
            return Err(Error::InvalidMessage {
                reason: "the conversation has gone on since that answer",
            });
        };
        // Store the new one first: a crash in between leaves both, never none.
        let shorter = match self.spoken_message(&SpokenText::part(words, "interrupted")) {
            Some(shorter) => Some(self.store_answer(newest, shorter).await?),
            None => None,
        };
        let one: RangeInclusive<u64> = seq..=seq;
        self.store.forget(&[one]).await?;
        Ok(shorter)
    }

    async fn begin(&self) -> Result<OwnedMutexGuard<TurnState>> {
        self.binding()?;
        let state = self.turn().await?;
        self.ending.store(false, Ordering::Release);
        Ok(state)
    }

    /// Whether an utterance has left the context: it was cleared, or said before this conversation started clean.
    async fn is_over(&self, utterance: &StoredMessage) -> Result<bool> {
        let profile = self.store.profile().await?;
        Ok(profile.hides(utterance) || self.parts.prompts.started_after() >= utterance.seq)
    }

    /// Drops the pending turn if another process has forgotten its utterance. There is nothing left to answer, and
    /// its spoken text goes too.
    async fn drop_forgotten(&self, state: &mut TurnState) {
        let Some(PendingTurn { turn: Utterance::Stored(stored), .. }) = &state.pending else {
            return;
        };
        let Ok(reading) = self.store.read_seqs(stored.seq..=stored.seq).await else { return };
        // Only if the message is certainly gone. A file may be unreadable for a moment.
        let is_there = reading.messages.iter().any(|there| there.name == stored.name);
        let is_about = |seqs: RangeInclusive<u64>| seqs.contains(&stored.seq);
        let is_doubtful = reading.skipped.iter().any(|found| found.numbers().is_none_or(is_about));
        if !is_there && !is_doubtful {
            state.pending = None;
        }
    }

    /// Stores the spoken text of an answer that was not retried, because another utterance comes.
    pub(crate) async fn keep_unfinished(&self, state: &mut TurnState) -> Result<()> {
        let Some(pending) = state.pending.take() else { return Ok(()) };
        state.off_record = !matches!(pending.turn, Utterance::Stored(_));
        let Utterance::Stored(utterance) = &pending.turn else { return Ok(()) };
        let Some(message) = self.spoken_message(&pending.unfinished.spoken()) else {
            return Ok(());
        };
        match self.store_answer(utterance, message).await {
            // The spoken text goes with the forgotten utterance.
            Ok(_) | Err(Error::UtteranceForgotten) => Ok(()),
            // It can never be stored, and its turn has reported that.
            Err(error @ (Error::TooLarge { .. } | Error::InvalidMessage { .. })) => {
                tracing::warn!(%error, "what was spoken of an answer cannot be kept");
                Ok(())
            }
            Err(error) => {
                state.pending = Some(pending);
                Err(error)
            }
        }
    }

    /// The newest utterance if no whole answer follows it, with the function calls for it.
    async fn unanswered(&self) -> Result<PendingTurn> {
        let tail = self.store.read_thread(self.thread(), A_LONG_EXCHANGE).await?.messages;
        let is_utterance = |stored: &Arc<StoredMessage>| stored.message.role == ChatRole::User;
        let at = tail.iter().rposition(is_utterance).ok_or(Error::NothingToRetry)?;
        let mut behind = tail.into_iter().skip(at);
        let utterance = behind.next().ok_or(Error::NothingToRetry)?;
        if self.is_over(&utterance).await? {
            return Err(Error::NothingToRetry);
        }
        let mut since = Vec::new();
        for stored in behind {
            let message = &stored.message;
            match message.role {
                ChatRole::Tool => since.push(stored.into()),
                ChatRole::Assistant if !message.tool_calls.is_empty() => since.push(stored.into()),
                ChatRole::Assistant if message.cut_off().is_some() => {}
                ChatRole::System => {}
                _ => return Err(Error::NothingToRetry),
            }
        }
        Ok(PendingTurn::new(Utterance::Stored(utterance), since))
    }

    fn results(&self, called: &ChatMessage, results: Vec<String>) -> Result<Vec<ChatMessage>> {
        let (calls, given) = (&called.tool_calls, results.len());
        let is_own = |call: &ToolCall| self.parts.memory.is_some_and(|memory| memory.has(call));
        let asked = calls.iter().filter(|call| !is_own(call)).count();
        if asked != given {
            return Err(Error::ToolResults { called: asked, given });
        }
        let mut results = results.into_iter();
        let messages = calls.iter().map(|call| {
            let result =
                if is_own(call) { Some(texts::CALL_ALONE.to_owned()) } else { results.next() };
            let result = result.unwrap_or_default();
            let mut message = self.message(ChatRole::Tool, result);
            message.tool_call_id = Some(call.id.clone()).filter(|id| !id.is_empty());
            message.with_metadata(TOOL, &call.name)
        });
        Ok(messages.collect())
    }

    /// Starts the turn in its own task, which ends properly whatever happens to the answer.
    fn answer(
        &self,
        mut state: OwnedMutexGuard<TurnState>,
        pending: PendingTurn,
    ) -> Result<Answer> {
        let utterance = match &pending.turn {
            Utterance::Stored(stored) => Some(Arc::clone(stored)),
            Utterance::Unstored(_) | Utterance::OffRecord(_) => None,
        };
        state.off_record = false;
        let (answer, wire) = Answer::new(self.clone(), utterance);
        let task = TurnTask::new(self.clone(), self.binding()?.clone(), state, pending);
        tokio::spawn(task.run(wire));
        Ok(answer)
    }
}

pub(super) fn with_words(message: ChatMessage) -> Result<ChatMessage> {
    if message.content.trim().is_empty() {
        return Err(Error::InvalidMessage { reason: "there are no words to answer" });
    }
    Ok(message)
}

/// Runs to its end even if the caller goes away, so that nothing is stored twice or in part.
async fn detached<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    joined(tokio::spawn(work).await)
}
