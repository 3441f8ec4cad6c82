//! Turns of a host that asks a model itself: an utterance is stored, and later its answer.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;

use crate::conversation::Conversation;
use crate::conversation::turn::calibrator::TokenCalibrator;
use crate::conversation::turn::start::with_words;
use crate::conversation::turn::state::{SpokenText, TurnState};
use crate::error::{Error, Result};
use crate::message::{CUT_OFF, ChatMessage, ChatRole};
use crate::model::render::StampFilter;
use crate::prompt::{Prompt, Receipt};
use crate::store::{Document, StoredMessage};

/// A stored utterance with the prompt for the model.
#[derive(Debug)]
#[non_exhaustive]
pub struct PreparedTurn {
    /// The utterance as it is stored.
    pub message: Arc<StoredMessage>,
    /// The prompt for the model, to be rendered.
    pub prompt: Prompt,
    /// The receipt of the prompt.
    pub receipt: Receipt,
}

/// A turn whose messages a host stores itself. Other turns of the conversation wait until it ends or is dropped.
pub struct HostTurn {
    conversation: Conversation,
    state: OwnedMutexGuard<TurnState>,
}

impl HostTurn {
    /// Ends the turn. What is new of the index is written in the background.
    pub fn end(self) {
        drop(self.state);
        #[cfg(feature = "recall")]
        self.conversation.parts.recall.save_in_background();
    }
}

debug_shows!(HostTurn: conversation);

impl Conversation {
    /// Begins a turn of a host that stores the messages itself, such as one that passes a client's requests on to a model.
    /// Waits until no other turn is in progress.
    ///
    /// # Errors
    /// [`Error::TurnInProgress`], and those of storing what was spoken in the turn before.
    pub async fn host_turn(&self) -> Result<HostTurn> {
        let mut state = self.turn().await?;
        self.keep_unfinished(&mut state).await?;
        state.off_record = false;
        Ok(HostTurn { conversation: self.clone(), state })
    }

    /// Stores an utterance with the current time, and builds the prompt for answering it. The utterance is durable
    /// before the prompt is built.
    pub async fn prepare_turn(&self, text: impl Into<String>) -> Result<PreparedTurn> {
        self.prepare_turn_for(self.message(ChatRole::User, text)).await
    }

    /// [`prepare_turn`](Self::prepare_turn) for an utterance with metadata, such as the speaker.
    ///
    /// # Errors
    /// [`Error::InvalidMessage`] for a message that is not a user's or has no words; nothing is stored then.
    pub async fn prepare_turn_for(&self, message: ChatMessage) -> Result<PreparedTurn> {
        let message = with_words(self.utterance(message)?)?;
        let mut state = self.turn().await?;
        self.keep_unfinished(&mut state).await?;
        state.off_record = false;
        let message = self.store.append_message(message).await?;
        self.last_utterance.set(Some(Arc::clone(&message)));
        drop(state);
        let (prompt, receipt) = self.host_prompt(Arc::clone(&message).into()).await?;
        Ok(PreparedTurn { message, prompt, receipt })
    }

    /// [`prepare_turn`](Self::prepare_turn) for a client that may be retrying, as with [`ask_once`](Self::ask_once).
    ///
    /// # Errors
    /// Those of [`prepare_turn`](Self::prepare_turn).
    pub async fn prepare_turn_once(
        &self,
        text: impl Into<String>,
        within: Duration,
    ) -> Result<PreparedTurn> {
        let message = self.utterance(self.message(ChatRole::User, text))?;
        let state = self.turn().await?;
        let repeated = self.repeated(&message, within).await?;
        drop(state);
        let Some(message) = repeated else { return self.prepare_turn_for(message).await };
        self.last_utterance.set(Some(Arc::clone(&message)));
        let (prompt, receipt) = self.host_prompt(Arc::clone(&message).into()).await?;
        Ok(PreparedTurn { message, prompt, receipt })
    }

    /// Stores the whole reply of the host's model to the utterance that was [prepared](Self::prepare_turn) last. A reply without
    /// such an utterance, or a second one to it, is stored as well: an assistant may speak by itself. Time stamps at
    /// its beginning, as renderers write them before users' messages, are removed.
    ///
    /// # Errors
    /// [`Error::UtteranceForgotten`] if the utterance was forgotten meanwhile; the reply is not stored then. Those of
    /// [`append_message`](crate::ConversationStore::append_message).
    pub async fn store_reply(&self, reply: impl Into<String>) -> Result<Arc<StoredMessage>> {
        self.store_last_reply(self.message(ChatRole::Assistant, reply)).await
    }

    /// [`store_reply`](Self::store_reply) for an interrupted reply: stores the spoken text, marked as cut off. Returns `None` if
    /// there is none.
    ///
    /// # Errors
    /// Those of [`store_reply`](Self::store_reply).
    pub async fn store_cut_off_reply(
        &self,
        spoken: impl Into<String>,
    ) -> Result<Option<Arc<StoredMessage>>> {
        match self.spoken_message(&SpokenText::part(spoken.into(), "interrupted")) {
            Some(spoken) => self.store_last_reply(spoken).await.map(Some),
            None => Ok(None),
        }
    }

    /// Stores the answer to an utterance, for hosts that answer several at once.
    ///
    /// # Errors
    /// Those of [`store_reply`](Self::store_reply), and [`Error::InvalidMessage`] for a message that is not an assistant's.
    pub async fn store_answer(
        &self,
        utterance: &StoredMessage,
        answer: ChatMessage,
    ) -> Result<Arc<StoredMessage>> {
        let answer = without_stamps(utterance, answer)?;
        let stored = self.store.append_answers(vec![answer], utterance).await?;
        stored.into_iter().next().ok_or(Error::ShuttingDown)
    }

    /// [`store_answer`](Self::store_answer) that saves a changed calibration in the same commit.
    pub(super) async fn store_calibrated_answer(
        &self,
        utterance: &StoredMessage,
        answer: ChatMessage,
        calibrator: &mut TokenCalibrator,
    ) -> Result<Arc<StoredMessage>> {
        let Some(learnt) = calibrator.unsaved() else {
            return self.store_answer(utterance, answer).await;
        };
        let answers = vec![without_stamps(utterance, answer)?];
        let document = Document::Calibration;
        let kept = self.store.append_answers_with_document(answers, utterance, document, &learnt);
        let (stored, saved) = kept.await?;
        calibrator.note_saved(saved);
        stored.into_iter().next().ok_or(Error::ShuttingDown)
    }

    async fn store_last_reply(&self, mut reply: ChatMessage) -> Result<Arc<StoredMessage>> {
        let Some(utterance) = self.last_utterance.get() else {
            StampFilter::naming(std::iter::empty()).remove_from(&mut reply.content);
            return self.store.append_message(reply).await;
        };
        let kept = self.store_answer(&utterance, reply).await;
        // After any other error, a second try may succeed.
        if matches!(kept, Ok(_) | Err(Error::UtteranceForgotten)) {
            self.last_utterance.set(None);
        }
        kept
    }

    /// The spoken text of an answer as a message; `None` if nothing was spoken.
    pub(super) fn spoken_message(&self, spoken: &SpokenText) -> Option<ChatMessage> {
        if spoken.is_nothing() {
            return None;
        }
        let message = self.message(ChatRole::Assistant, spoken.words.as_str());
        Some(match spoken.cut_off {
            Some(why) => message.with_metadata(CUT_OFF, why),
            None => message,
        })
    }
}

/// Removes time stamps at the beginning of an answer. A model that a host asks itself may write them too.
fn without_stamps(utterance: &StoredMessage, mut answer: ChatMessage) -> Result<ChatMessage> {
    if answer.role != ChatRole::Assistant {
        return Err(Error::InvalidMessage { reason: "an answer has the role of the assistant" });
    }
    let stamps = StampFilter::naming([&utterance.message].into_iter());
    stamps.remove_from(&mut answer.content);
    Ok(answer)
}
