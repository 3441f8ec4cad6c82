//! One turn, from the prompt to the sealed answer.

mod tools;

use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;
use tracing::Instrument;
use zeroize::Zeroizing;

use super::TurnReport;
use super::start::beginning;
use crate::context::ContextMessage;
use crate::conversation::turn::answer::{Event, Kept, Piece, Settled, Wire};
use crate::conversation::turn::state::{Between, Spoken, Unfinished, Waiting};
use crate::conversation::{Conversation, Mind};
use crate::error::{Error, ModelFailure, Result};
use crate::message::{ANSWER_TOKENS, ChatMessage, ChatRole, PROMPT_TOKENS, ToolCall};
use crate::model::render::{ModelRequest, Stamps};
use crate::model::{Limited, ModelLimits, ReplyPart, Thoughts, Usage};
use crate::prompt::Turn;

type Events = UnboundedSender<Event>;

/// A turn that is going on.
pub(in crate::conversation) struct Task {
    conversation: Conversation,
    mind: Mind,
    between: OwnedMutexGuard<Between>,
    turn: Turn,
    since: Vec<ContextMessage>,
    /// What was spoken of this answer before it had to be asked for again.
    before: Spoken,
    begun: Instant,
    text: Zeroizing<String>,
    calls: Vec<ToolCall>,
    /// How many bytes the conversation's own functions gave.
    given: usize,
    /// Whether the model was told to call no more of them.
    is_refused: bool,
    report: TurnReport,
}

impl Task {
    pub(in crate::conversation) fn new(
        conversation: Conversation,
        mind: Mind,
        mut between: OwnedMutexGuard<Between>,
        Waiting { turn, since, unfinished }: Waiting,
    ) -> Self {
        let before = unfinished.spoken();
        let unfinished = Unfinished::Failed(before.clone());
        let (waiting, brought) = (turn.clone(), since.clone());
        between.waiting = Some(Waiting { turn: waiting, since: brought, unfinished });
        Self {
            conversation,
            mind,
            between,
            turn,
            since,
            before,
            begun: Instant::now(),
            text: Zeroizing::default(),
            calls: Vec::new(),
            given: 0,
            is_refused: false,
            report: TurnReport::default(),
        }
    }

    pub(in crate::conversation) async fn run(mut self, mut wire: Wire) {
        let seq = match &self.turn {
            Turn::Stored(stored) => Some(stored.seq),
            Turn::Unstored(_) | Turn::OffRecord(_) => None,
        };
        let span = tracing::info_span!("turn", seq);
        async {
            let answered = tokio::select! {
                biased;
                settled = &mut wire.settled => Err(settled.unwrap_or(Settled::UpTo(0))),
                answered = self.reply(&wire.events) => Ok(answered),
            };
            self.report.whole_time = Some(self.begun.elapsed());
            let event = match answered {
                Err(settled) => self.end(settled, None).await,
                Ok(Ok(usage)) => {
                    // Whoever does not listen any more has settled.
                    let _ = wire.events.send(Event::Said);
                    let settled = wire.settled.await.unwrap_or(Settled::UpTo(0));
                    self.end(settled, Some(usage)).await
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, retries = self.report.retries, "the turn failed");
                    let _ = wire.events.send(Event::Report(Box::new(self.report.clone())));
                    let _ = wire.events.send(Event::Failed(error));
                    let settled = wire.settled.await.unwrap_or(Settled::UpTo(0));
                    let spoken = self.spoken(settled, Some("failed"));
                    let spoken = self.spoken_at_all(spoken);
                    self.leave(Unfinished::Failed(spoken));
                    self.keep_gauge().await;
                    return;
                }
            };
            let is_filled = self.conversation.is_filled(&self.report.receipt);
            // The turn is over for the next one before the host learns of it.
            drop(self.between);
            if is_filled {
                self.conversation.compact_when_idle();
            }
            let _ = wire.events.send(event);
        }
        .instrument(span)
        .await;
    }

    /// Asks, and hands over what comes.
    async fn reply(&mut self, events: &Events) -> Result<Usage> {
        let model = self.mind.model.name().to_owned();
        let limits = match self.mind.model.limits().await {
            Ok(limits) => limits,
            Err(error) => {
                // The receipt says what would have been asked.
                let Self { conversation, between, turn, since, .. } = self;
                if let Ok((_, receipt)) = between
                    .prompt(conversation, &model, &ModelLimits::default(), (turn, since))
                    .await
                {
                    self.report.receipt = receipt;
                }
                return Err(error);
            }
        };
        self.report.window = limits.window;
        let mut before = Usage::default();
        loop {
            let usage = self.round(&model, &limits, events).await?;
            let usage = usage.with_before(&before);
            self.report.usage = usage.clone();
            if let Some(memory) = self.memory_called(&limits) {
                self.look_up(memory, &limits, events).await?;
                before = usage;
                continue;
            }
            let hosts = |call: &&ToolCall| !self.conversation.memory.is_some_and(|m| m.has(call));
            let calls: Vec<_> = self.calls.iter().filter(hosts).cloned().collect();
            if !calls.is_empty() {
                let _ = events.send(Event::Piece(Piece::ToolCalls(calls)));
                return Ok(usage);
            }
            self.calls.clear();
            if self.text.trim().is_empty() {
                return Err(self.mind.said_nothing());
            }
            return Ok(usage);
        }
    }

    /// Asks once, and hands over what comes.
    async fn round(&mut self, model: &str, limits: &ModelLimits, events: &Events) -> Result<Usage> {
        let Self { conversation, between, turn, since, .. } = self;
        let (mut prompt, mut receipt) =
            between.prompt(conversation, model, limits, (turn, since)).await?;
        let mut reply = loop {
            let request = self.mind.renderer.render(&prompt);
            self.compare(&request.body);
            self.report.receipt = receipt.clone();
            let _ = events.send(Event::Report(Box::new(self.report.clone())));
            match self.mind.ask(&request).await {
                Err(error) if is_too_long(&error) && self.report.retries == 0 => {
                    self.between.gauge.too_long(model, &prompt.count(), limits.window);
                    let included = receipt.included();
                    let Self { conversation, between, turn, since, .. } = self;
                    let less = receipt.used_tokens / 2;
                    (prompt, receipt) = between
                        .shorter_prompt(conversation, model, limits, less, (turn, since))
                        .await?;
                    if receipt.included() == included {
                        return Err(error);
                    }
                    self.report.retries = 1;
                    tracing::info!(tokens = receipt.used_tokens, "asking again with less history");
                }
                reply => break reply?,
            }
        };
        let count = prompt.count();
        let (mut thoughts, mut stamps) = (Thoughts::default(), Stamps::of(&prompt));
        drop(prompt);
        let mut usage = loop {
            let part = match reply.next().await {
                // Words are worth keeping; calls that are not all there are not.
                Err(Error::Model { failure: ModelFailure::TooMuch { limit }, .. })
                    if !self.text.trim().is_empty() && self.calls.is_empty() =>
                {
                    break Usage { cut: true, cut_at: Some(limit), ..Usage::default() };
                }
                part => part?,
            };
            match part {
                ReplyPart::Text(text) => {
                    let thought = thoughts.is_thinking();
                    let words = thoughts.remove(&text);
                    if !thought && thoughts.is_thinking() {
                        let _ = events.send(Event::Piece(Piece::Thinking));
                    }
                    self.hand_over(stamps.remove(&words), events);
                }
                ReplyPart::Thinking => drop(events.send(Event::Piece(Piece::Thinking))),
                ReplyPart::ToolCalls(calls) => self.calls.extend(calls),
                ReplyPart::Done(usage) => break usage,
            }
        };
        self.hand_over(stamps.remove(&thoughts.rest()), events);
        self.hand_over(stamps.rest(), events);
        usage.cut &= self.calls.is_empty();
        if let Some(counted) = usage.prompt_tokens {
            let teaches = matches!(self.turn, Turn::Stored(_));
            let gauge = &mut self.between.gauge;
            self.report.truncated = gauge.take_in(model, &count, counted, limits.window, teaches);
        }
        Ok(usage)
    }

    /// Notes how much of a request is as it was in the last one.
    fn compare(&mut self, body: &str) {
        let same = |last: &Zeroizing<String>| {
            last.bytes().zip(body.bytes()).take_while(|(last, now)| last == now).count()
        };
        if self.report.retries == 0 {
            self.report.unchanged_bytes = self.between.request.as_ref().map(same);
        }
        self.report.request_bytes = body.len();
        self.between.request = Some(Zeroizing::new(body.to_owned()));
    }

    fn hand_over(&mut self, words: String, events: &Events) {
        if words.is_empty() {
            return;
        }
        self.report.time_to_first_token.get_or_insert_with(|| self.begun.elapsed());
        self.text.push_str(&words);
        let _ = events.send(Event::Piece(Piece::Text(words)));
    }

    /// Keeps what is to be kept. Without `usage` the answer was not at its end.
    async fn end(&mut self, settled: Settled, usage: Option<Usage>) -> Event {
        let has_unsaid = matches!(settled, Settled::UpTo(_)) && !self.calls.is_empty();
        let cut_off = match &usage {
            Some(usage) if !has_unsaid => usage.cut.then_some("length"),
            _ => Some("interrupted"),
        };
        let spoken = self.spoken(settled, cut_off);
        let interrupted = cut_off == Some("interrupted") || spoken.cut_off == Some("interrupted");
        let report = self.report.clone();
        tracing::info!(
            first_token_ms = millis(report.time_to_first_token),
            prompt_tokens = report.usage.prompt_tokens,
            unchanged_bytes = report.unchanged_bytes,
            truncated = report.truncated,
            interrupted,
            "the turn is over"
        );
        // Whoever has not got the calls has interrupted the answer before them.
        if matches!(settled, Settled::Whole) && !self.calls.is_empty() {
            let mut called = self.conversation.message(ChatRole::Assistant, spoken.words.as_str());
            called.tool_calls = std::mem::take(&mut self.calls);
            self.leave(Unfinished::Calls(called));
            return Event::Done(Box::new(Kept { message: None, report }));
        }
        let spoken = self.spoken_at_all(spoken);
        let mut message = None;
        if let (Turn::Stored(utterance), Some(mut said)) =
            (&self.turn, spoken.clone().message(&self.conversation))
        {
            note(&mut said, &report.usage);
            match self.conversation.keep_answer(utterance, said).await {
                Ok(stored) => message = Some(stored),
                Err(error @ Error::UtteranceForgotten) => {
                    self.between.waiting = None;
                    self.between.request = None;
                    return Event::Failed(error);
                }
                Err(error) => {
                    self.leave(Unfinished::Failed(spoken));
                    return Event::Failed(error);
                }
            }
        }
        if interrupted {
            // It may be asked again, and all that was spoken is kept.
            self.leave(Unfinished::Failed(Spoken::default()));
        } else {
            self.between.waiting = None;
            self.between.off_record = !matches!(self.turn, Turn::Stored(_));
        }
        self.keep_gauge().await;
        Event::Done(Box::new(Kept { message, report }))
    }

    async fn keep_gauge(&mut self) {
        if let Turn::Stored(_) = self.turn {
            self.between.gauge.keep(&*self.conversation.store).await;
        }
    }

    /// What was spoken this time; `cut_off` is why, if all that came was.
    fn spoken(&mut self, settled: Settled, cut_off: Option<&'static str>) -> Spoken {
        let words = std::mem::take(&mut self.text);
        let failed = cut_off == Some("failed");
        match settled {
            Settled::UpTo(chars) => match beginning(&words, chars) {
                Some(words) => Spoken::part(words, if failed { "failed" } else { "interrupted" }),
                None => Spoken { words, cut_off },
            },
            Settled::Whole => Spoken { words, cut_off },
        }
    }

    /// What was spoken this time, or else before it was asked again.
    fn spoken_at_all(&mut self, spoken: Spoken) -> Spoken {
        if spoken.is_nothing() { std::mem::take(&mut self.before) } else { spoken }
    }

    /// Leaves the utterance waiting for an answer.
    fn leave(&mut self, unfinished: Unfinished) {
        if let Some(waiting) = &mut self.between.waiting {
            waiting.unfinished = unfinished;
        }
    }
}

impl Mind {
    /// Sends a request; the answer is held to the limits.
    pub(in crate::conversation) async fn ask(&self, request: &ModelRequest) -> Result<Limited> {
        let reply = self.model.reply(request).await?;
        Ok(Limited::new(reply, self.model.name(), self.limits))
    }

    pub(in crate::conversation) fn said_nothing(&self) -> Error {
        self.failed(ModelFailure::Empty)
    }

    pub(in crate::conversation) fn failed(&self, failure: ModelFailure) -> Error {
        Error::Model { server: self.model.name().to_owned(), failure }
    }
}

/// Has an answer say what it took.
fn note(message: &mut ChatMessage, usage: &Usage) {
    for (name, tokens) in
        [(PROMPT_TOKENS, usage.prompt_tokens), (ANSWER_TOKENS, usage.answer_tokens)]
    {
        if let Some(tokens) = tokens {
            message.metadata.insert(name.to_owned(), tokens.to_string());
        }
    }
}

fn is_too_long(error: &Error) -> bool {
    matches!(error, Error::Model { failure: ModelFailure::PromptTooLong, .. })
}

fn millis(time: Option<Duration>) -> Option<u64> {
    time.and_then(|time| u64::try_from(time.as_millis()).ok())
}
