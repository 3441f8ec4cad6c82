//! An answer as the host receives it.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::sync::{mpsc, oneshot};

use super::TurnReport;
use crate::conversation::Conversation;
use crate::error::{Error, Result};
use crate::message::ToolCall;
use crate::prompt::Receipt;
use crate::store::StoredMessage;

/// A model's answer in pieces. Its last event holds the stored message.
///
/// A caller who asks for more after the last text has spoken everything. Dropping the answer earlier interrupts it:
/// the model is told to stop, and the delivered text is stored and marked as interrupted. A task does this, and the
/// next turn and [`Conversation::close`] wait for it. Call [`spoken_up_to`](Self::spoken_up_to) instead if the user
/// heard less than was delivered.
///
/// The turn lasts until the answer ends or is dropped. No other turn of the conversation begins meanwhile.
pub struct Answer {
    events: mpsc::UnboundedReceiver<TurnEvent>,
    playback_end: Option<oneshot::Sender<PlaybackEnd>>,
    conversation: Conversation,
    utterance: Option<Arc<StoredMessage>>,
    delivered_chars: usize,
    report: Option<Box<TurnReport>>,
    end: Option<AnswerEnd>,
}

/// How an ended answer ended.
enum AnswerEnd {
    Complete(Box<TurnOutcome>),
    Failed,
}

/// An event of an answer. `Debug` shows no words.
#[derive(Clone)]
#[non_exhaustive]
pub enum AnswerEvent {
    /// Text to be spoken.
    Text(String),
    /// The model is thinking. Its thoughts are neither spoken nor stored.
    Thinking,
    /// The model calls these functions of the host. The answer ends here; [`Conversation::tool_results`] continues
    /// the turn.
    ToolCalls(Vec<ToolCall>),
    /// The conversation has run one of its own functions for the model. The answer continues.
    LookedUp(ToolCall),
    /// The end.
    Done(Box<TurnOutcome>),
}

impl fmt::Debug for AnswerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Thinking => f.write_str("Thinking"),
            Self::ToolCalls(calls) => write!(f, "ToolCalls({})", calls.len()),
            Self::LookedUp(call) => f.debug_tuple("LookedUp").field(call).finish(),
            Self::Done(kept) => f.debug_tuple("Done").field(kept).finish(),
        }
    }
}

/// How a turn ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TurnOutcome {
    /// The answer as stored. `None` if nothing was spoken, the turn was off the record, or the model called
    /// functions, which are stored with their results.
    pub message: Option<Arc<StoredMessage>>,
    /// The figures of the turn.
    pub report: TurnReport,
}

/// What a turn sends to its answer.
pub(super) enum TurnEvent {
    /// The figures so far: sent when the model is asked, and again if the turn fails.
    Report(Box<TurnReport>),
    Answer(AnswerEvent),
    /// All text has been sent. The turn waits to learn how much of it was spoken.
    TextComplete,
    Done(Box<TurnOutcome>),
    Failed(Error),
}

/// What an answer sends to its turn: how much was spoken. It ends the turn at any point.
#[derive(Debug, Clone, Copy)]
pub(super) enum PlaybackEnd {
    Whole,
    UpTo(usize),
}

/// The turn's end of the channel to its answer.
pub(super) struct TurnChannel {
    pub(super) events: mpsc::UnboundedSender<TurnEvent>,
    pub(super) playback_end: oneshot::Receiver<PlaybackEnd>,
}

impl Answer {
    pub(super) fn new(
        conversation: Conversation,
        utterance: Option<Arc<StoredMessage>>,
    ) -> (Self, TurnChannel) {
        let (sender, events) = mpsc::unbounded_channel();
        let (end_sender, end_receiver) = oneshot::channel();
        let answer = Self {
            events,
            playback_end: Some(end_sender),
            conversation,
            utterance,
            delivered_chars: 0,
            report: None,
            end: None,
        };
        (answer, TurnChannel { events: sender, playback_end: end_receiver })
    }

    /// The utterance being answered, as stored; `None` off the record.
    pub fn utterance(&self) -> Option<&Arc<StoredMessage>> {
        self.utterance.as_ref()
    }

    /// The receipt of the prompt, available once the model was asked. It stays available when the answer fails or is
    /// interrupted.
    pub fn receipt(&self) -> Option<&Receipt> {
        self.report().map(|report| &report.receipt)
    }

    /// The figures of the turn so far: those of the prompt once the model was asked, all of them at the end.
    pub fn report(&self) -> Option<&TurnReport> {
        match &self.end {
            Some(AnswerEnd::Complete(kept)) => Some(&kept.report),
            _ => self.report.as_deref(),
        }
    }

    /// The next event; `None` after the last one, which is [`AnswerEvent::Done`] or an error.
    ///
    /// # Errors
    /// The reason why there is no answer, or only a part of one. The utterance stays stored, and
    /// [`Conversation::retry`] asks again.
    pub async fn next(&mut self) -> Option<Result<AnswerEvent>> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// The text of the whole answer, and the turn's outcome.
    ///
    /// # Errors
    /// Those of [`next`](Self::next).
    pub async fn whole(mut self) -> Result<(String, TurnOutcome)> {
        let mut words = String::new();
        while let Some(piece) = self.next().await {
            match piece? {
                AnswerEvent::Text(text) => words.push_str(&text),
                AnswerEvent::Done(kept) => return Ok((words, *kept)),
                AnswerEvent::Thinking | AnswerEvent::ToolCalls(_) | AnswerEvent::LookedUp(_) => {}
            }
        }
        Err(Error::ShuttingDown)
    }

    /// Interrupts the answer after its first `chars` characters were heard, and returns what is stored. If the whole
    /// answer is stored already, the shorter one replaces it.
    ///
    /// # Errors
    /// Those of storing the text; [`Error::InvalidMessage`] if the conversation has continued since, or the answer
    /// had failed. In that case the delivered text is stored before the next utterance, unless the turn is retried.
    pub async fn spoken_up_to(mut self, chars: usize) -> Result<TurnOutcome> {
        self.end_playback(PlaybackEnd::UpTo(chars));
        while self.end.is_none() {
            let event = poll_fn(|cx| self.poll_turn(cx)).await;
            if let Some(Err(error)) = self.deliver(event) {
                return Err(error);
            }
        }
        match self.end.take() {
            Some(AnswerEnd::Complete(kept)) => self.conversation.shorten(*kept, chars).await,
            _ => Err(Error::InvalidMessage { reason: "the answer had failed already" }),
        }
    }

    pub(super) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AnswerEvent>>> {
        while self.end.is_none() {
            let event = ready!(self.poll_turn(cx));
            if let TurnEvent::Answer(AnswerEvent::Text(text)) = &event {
                self.delivered_chars += text.chars().count();
            }
            if let Some(piece) = self.deliver(event) {
                return Poll::Ready(Some(piece));
            }
        }
        Poll::Ready(None)
    }

    /// Polls for the turn's next event.
    pub(super) fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<TurnEvent> {
        let event = ready!(self.events.poll_recv(cx));
        Poll::Ready(event.unwrap_or(TurnEvent::Failed(Error::ShuttingDown)))
    }

    /// Turns an event into the host's. Tracks the delivered text, which the turn needs to know how much was spoken.
    pub(super) fn deliver(&mut self, event: TurnEvent) -> Option<Result<AnswerEvent>> {
        match event {
            TurnEvent::Report(report) => {
                self.report = Some(report);
                None
            }
            TurnEvent::TextComplete => {
                self.end_playback(PlaybackEnd::Whole);
                None
            }
            TurnEvent::Answer(piece) => {
                if let AnswerEvent::ToolCalls(_) = piece {
                    self.end_playback(PlaybackEnd::Whole);
                }
                Some(Ok(piece))
            }
            TurnEvent::Done(kept) => {
                self.end = Some(AnswerEnd::Complete(kept.clone()));
                Some(Ok(AnswerEvent::Done(kept)))
            }
            TurnEvent::Failed(error) => {
                self.end_playback(PlaybackEnd::UpTo(self.delivered_chars));
                self.end = Some(AnswerEnd::Failed);
                Some(Err(error))
            }
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Sets how much was spoken, if that is less than was delivered.
    pub(super) fn spoken(&mut self, chars: usize) {
        self.delivered_chars = chars;
    }

    /// Ends the turn, unless it has ended.
    pub(super) fn end_playback(&mut self, end: PlaybackEnd) {
        if let Some(sender) = self.playback_end.take() {
            self.conversation.ends();
            // A failed turn no longer listens.
            let _ = sender.send(end);
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.end_playback(PlaybackEnd::UpTo(self.delivered_chars));
    }
}

impl Stream for Answer {
    type Item = Result<AnswerEvent>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(cx)
    }
}

debug_shows!(Answer as it: utterance, handed_out_chars = it.delivered_chars);
