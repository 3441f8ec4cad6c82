//! An answer as the host receives it.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::sync::{mpsc, oneshot};

use super::{Sentences, TurnReport};
use crate::conversation::Conversation;
use crate::error::{Error, Result};
use crate::message::ToolCall;
use crate::prompt::Receipt;
use crate::store::StoredMessage;

/// A model's answer, piece by piece, ending in the message as it is kept.
///
/// Whoever takes the last piece of text and asks for more has spoken everything. Dropping the answer earlier
/// interrupts it: the model is told to stop, and what was handed out until then is kept, marked as interrupted, by a
/// task that the next turn and [`Conversation::close`] wait for. [`spoken_up_to`](Self::spoken_up_to) does the same
/// where less was heard than handed out.
///
/// The turn goes on until the answer is at its end or dropped; no other turn of the conversation begins meanwhile.
pub struct Answer {
    events: mpsc::UnboundedReceiver<Event>,
    settle: Option<oneshot::Sender<Settled>>,
    conversation: Conversation,
    utterance: Option<Arc<StoredMessage>>,
    handed_out: usize,
    report: Option<Box<TurnReport>>,
    end: Option<End>,
}

/// How an answer that is over ended.
enum End {
    Kept(Box<Kept>),
    Failed,
}

/// A piece of an answer. `Debug` shows no words.
#[derive(Clone)]
#[non_exhaustive]
pub enum Piece {
    /// Words to be spoken.
    Text(String),
    /// The model thinks; what it thinks is neither spoken nor kept.
    Thinking,
    /// The model wants these functions run. The turn needs nothing more of the answer;
    /// [`Conversation::tool_results`] goes on with it.
    ToolCalls(Vec<ToolCall>),
    /// The conversation has run one of its own functions for the model; the answer goes on by itself.
    LookedUp(ToolCall),
    /// The end.
    Done(Box<Kept>),
}

impl fmt::Debug for Piece {
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
pub struct Kept {
    /// The answer as it is kept; `None` where nothing was spoken, the turn was off the record, or the model called
    /// functions, which are kept with their results.
    pub message: Option<Arc<StoredMessage>>,
    /// What the turn took.
    pub report: TurnReport,
}

/// What a turn sends to its answer.
pub(in crate::conversation) enum Event {
    /// What the turn took so far: once when the model is asked, and once more if the turn fails.
    Report(Box<TurnReport>),
    Piece(Piece),
    /// All words have been sent; the turn waits for how many of them were spoken.
    Said,
    Done(Box<Kept>),
    Failed(Error),
}

/// What an answer sends to its turn: how much was spoken. It ends the turn wherever that is.
#[derive(Debug, Clone, Copy)]
pub(in crate::conversation) enum Settled {
    Whole,
    UpTo(usize),
}

/// A turn's end of the connection to its answer.
pub(in crate::conversation) struct Wire {
    pub(in crate::conversation) events: mpsc::UnboundedSender<Event>,
    pub(in crate::conversation) settled: oneshot::Receiver<Settled>,
}

impl Answer {
    pub(in crate::conversation) fn new(
        conversation: Conversation,
        utterance: Option<Arc<StoredMessage>>,
    ) -> (Self, Wire) {
        let (sender, events) = mpsc::unbounded_channel();
        let (settle, settled) = oneshot::channel();
        let settle = Some(settle);
        let answer = Self {
            events,
            settle,
            conversation,
            utterance,
            handed_out: 0,
            report: None,
            end: None,
        };
        (answer, Wire { events: sender, settled })
    }

    /// The utterance being answered, as it is kept; `None` off the record.
    pub fn utterance(&self) -> Option<&Arc<StoredMessage>> {
        self.utterance.as_ref()
    }

    /// What went into the prompt, once the model was asked. It stays when the answer fails or is interrupted.
    pub fn receipt(&self) -> Option<&Receipt> {
        self.report().map(|report| &report.receipt)
    }

    /// The figures of the turn, as far as they are known: those of the prompt once the model was asked, and all of them at
    /// the end.
    pub fn report(&self) -> Option<&TurnReport> {
        match &self.end {
            Some(End::Kept(kept)) => Some(&kept.report),
            _ => self.report.as_deref(),
        }
    }

    /// The next piece; `None` behind the last, which is [`Piece::Done`] or an error.
    ///
    /// # Errors
    /// Why there is no answer, or no whole one; the utterance is kept, and [`Conversation::retry`] asks again.
    pub async fn next(&mut self) -> Option<Result<Piece>> {
        poll_fn(|cx| self.poll_piece(cx)).await
    }

    /// The whole answer's words, and how the turn ended.
    ///
    /// # Errors
    /// Those of [`next`](Self::next).
    pub async fn whole(mut self) -> Result<(String, Kept)> {
        let mut words = String::new();
        while let Some(piece) = self.next().await {
            match piece? {
                Piece::Text(text) => words.push_str(&text),
                Piece::Done(kept) => return Ok((words, *kept)),
                Piece::Thinking | Piece::ToolCalls(_) | Piece::LookedUp(_) => {}
            }
        }
        Err(Error::ShuttingDown)
    }

    /// The same answer in whole sentences, for a voice to read.
    pub fn sentences(self) -> Sentences {
        Sentences::new(self)
    }

    /// Interrupts the answer, of which only the first `chars` characters were heard, and says what is kept. Where
    /// the whole answer is kept already, the shorter one takes its place.
    ///
    /// # Errors
    /// What keeps the words from being kept; [`Error::InvalidMessage`] where the conversation has gone on since, or
    /// the answer had failed: what was handed out of it is kept before the next utterance, unless it is retried.
    pub async fn spoken_up_to(mut self, chars: usize) -> Result<Kept> {
        self.settle(Settled::UpTo(chars));
        while self.end.is_none() {
            let event = poll_fn(|cx| self.poll_event(cx)).await;
            if let Some(Err(error)) = self.hand_out(event) {
                return Err(error);
            }
        }
        match self.end.take() {
            Some(End::Kept(kept)) => self.conversation.shorten(*kept, chars).await,
            _ => Err(Error::InvalidMessage { reason: "the answer had failed already" }),
        }
    }

    pub(in crate::conversation) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Piece>>> {
        while self.end.is_none() {
            let event = ready!(self.poll_event(cx));
            if let Event::Piece(Piece::Text(text)) = &event {
                self.handed_out += text.chars().count();
            }
            if let Some(piece) = self.hand_out(event) {
                return Poll::Ready(Some(piece));
            }
        }
        Poll::Ready(None)
    }

    /// The turn's next event.
    pub(in crate::conversation) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        let event = ready!(self.events.poll_recv(cx));
        Poll::Ready(event.unwrap_or(Event::Failed(Error::ShuttingDown)))
    }

    /// What the host gets of an event; what it has got then tells the turn how much was spoken.
    pub(in crate::conversation) fn hand_out(&mut self, event: Event) -> Option<Result<Piece>> {
        match event {
            Event::Report(report) => {
                self.report = Some(report);
                None
            }
            Event::Said => {
                self.settle(Settled::Whole);
                None
            }
            Event::Piece(piece) => {
                if let Piece::ToolCalls(_) = piece {
                    self.settle(Settled::Whole);
                }
                Some(Ok(piece))
            }
            Event::Done(kept) => {
                self.end = Some(End::Kept(kept.clone()));
                Some(Ok(Piece::Done(kept)))
            }
            Event::Failed(error) => {
                self.settle(Settled::UpTo(self.handed_out));
                self.end = Some(End::Failed);
                Some(Err(error))
            }
        }
    }

    pub(in crate::conversation) fn is_over(&self) -> bool {
        self.end.is_some()
    }

    /// Says how much has been spoken so far, where that is less than was handed out.
    pub(in crate::conversation) fn spoken(&mut self, chars: usize) {
        self.handed_out = chars;
    }

    /// Ends the turn, unless it has been ended.
    pub(in crate::conversation) fn settle(&mut self, settled: Settled) {
        if let Some(settle) = self.settle.take() {
            self.conversation.ends();
            // A turn that has failed does not listen any more.
            let _ = settle.send(settled);
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.settle(Settled::UpTo(self.handed_out));
    }
}

impl Stream for Answer {
    type Item = Result<Piece>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_piece(cx)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("utterance", &self.utterance)
            .field("handed_out_chars", &self.handed_out)
            .finish_non_exhaustive()
    }
}
