//! One turn, from the prompt to the stored answer.

mod tools;

use std::ops::Range;
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;
use tracing::Instrument;
use zeroize::Zeroizing;

use super::TurnReport;
use crate::context::ContextMessage;
use crate::conversation::Conversation;
use crate::conversation::metrics::TurnEnd;
use crate::conversation::model_binding::ModelBinding;
use crate::conversation::turn::answer::{
    AnswerEvent, PlaybackEnd, TurnChannel, TurnEvent, TurnOutcome,
};
use crate::conversation::turn::state::{PendingTurn, SpokenText, TurnState, Unfinished, beginning};
use crate::error::{Error, ModelFailure, Result};
use crate::message::{
    ANSWER_TOKENS, CACHED_TOKENS, ChatMessage, ChatRole, FIRST_WORD_MS, PROMPT_TOKENS, RECALLED,
    ToolCall,
};
use crate::model::render::StampFilter;
use crate::model::{ModelLimits, ReplyPart, ThinkingFilter, Usage};
use crate::prompt::{Prompt, Utterance};

type TurnEvents = UnboundedSender<TurnEvent>;

/// A turn in progress.
pub(super) struct TurnTask {
    conversation: Conversation,
    binding: ModelBinding,
    /// The last prompt that the model read.
    prompt: Option<Prompt>,
    state: OwnedMutexGuard<TurnState>,
    turn: Utterance,
    since: Vec<ContextMessage>,
    /// The text that was spoken before the model had to be asked again.
    before: SpokenText,
    begun: Instant,
    text: Zeroizing<String>,
    /// The parts of the text, in bytes, that turned out to be thoughts after they were spoken.
    thoughts: Vec<Range<usize>>,
    calls: Vec<ToolCall>,
    /// The bytes that the conversation's own functions have returned.
    given: usize,
    /// Whether the model was told to stop calling them.
    is_refused: bool,
    report: TurnReport,
}

impl TurnTask {
    pub(super) fn new(
        conversation: Conversation,
        binding: ModelBinding,
        mut state: OwnedMutexGuard<TurnState>,
        PendingTurn { turn, since, unfinished }: PendingTurn,
    ) -> Self {
        let before = unfinished.spoken();
        let unfinished = Unfinished::Failed(before.clone());
        let (pending, brought) = (turn.clone(), since.clone());
        state.pending = Some(PendingTurn { turn: pending, since: brought, unfinished });
        Self {
            conversation,
            binding,
            prompt: None,
            state,
            turn,
            since,
            before,
            begun: Instant::now(),
            text: Zeroizing::default(),
            thoughts: Vec::new(),
            calls: Vec::new(),
            given: 0,
            is_refused: false,
            report: TurnReport::default(),
        }
    }

    pub(super) async fn run(mut self, mut wire: TurnChannel) {
        let seq = match &self.turn {
            Utterance::Stored(stored) => Some(stored.seq),
            Utterance::Unstored(_) | Utterance::OffRecord(_) => None,
        };
        let span = tracing::info_span!("turn", seq);
        async {
            let answered = tokio::select! {
                biased;
                playback_end = &mut wire.playback_end => Err(playback_end.unwrap_or(PlaybackEnd::UpTo(0))),
                answered = self.reply(&wire.events) => Ok(answered),
            };
            self.report.whole_time = Some(self.begun.elapsed());
            let event = match answered {
                Err(playback_end) => self.end(playback_end, None).await,
                Ok(Ok(usage)) => {
                    // If nobody listens, the answer has already sent its end.
                    let _ = wire.events.send(TurnEvent::TextComplete);
                    let playback_end = wire.playback_end.await.unwrap_or(PlaybackEnd::UpTo(0));
                    self.end(playback_end, Some(usage)).await
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, retries = self.report.retries, "the turn failed");
                    self.conversation.parts.metrics.failed(&error);
                    let _ = wire.events.send(TurnEvent::Report(Box::new(self.report.clone())));
                    let _ = wire.events.send(TurnEvent::Failed(error));
                    let playback_end = wire.playback_end.await.unwrap_or(PlaybackEnd::UpTo(0));
                    let spoken = self.spoken(playback_end, Some("failed"));
                    let spoken = self.spoken_at_all(spoken);
                    self.leave(Unfinished::Failed(spoken));
                    self.save_calibration().await;
                    self.count(TurnEnd::Failed);
                    return;
                }
            };
            let is_filled = self.conversation.is_filled(&self.report.receipt);
            // The next turn may begin before the host learns that this one has ended.
            drop(self.state);
            if is_filled {
                self.conversation.summarize_when_idle();
            }
            #[cfg(feature = "recall")]
            self.conversation.parts.recall.save_in_background();
            let _ = wire.events.send(event);
        }
        .instrument(span)
        .await;
    }

    /// Asks the model, and delivers its answer.
    async fn reply(&mut self, events: &TurnEvents) -> Result<Usage> {
        let model = self.binding.model.name().to_owned();
        let limits = match self.binding.model.limits().await {
            Ok(limits) => limits,
            Err(error) => {
                // The receipt describes the request that would have been sent.
                let Self { conversation, state, turn, since, .. } = self;
                if let Ok((_, receipt)) =
                    state.prompt(conversation, &model, &ModelLimits::default(), (turn, since)).await
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
            let hosts =
                |call: &&ToolCall| !self.conversation.parts.memory.is_some_and(|m| m.has(call));
            let calls: Vec<_> = self.calls.iter().filter(hosts).cloned().collect();
            if !calls.is_empty() {
                let _ = events.send(TurnEvent::Answer(AnswerEvent::ToolCalls(calls)));
                return Ok(usage);
            }
            self.calls.clear();
            if self.answer(&self.text).trim().is_empty() {
                return Err(self.binding.failed(ModelFailure::Empty));
            }
            return Ok(usage);
        }
    }

    /// Asks the model once, and delivers its answer.
    async fn round(
        &mut self,
        model: &str,
        limits: &ModelLimits,
        events: &TurnEvents,
    ) -> Result<Usage> {
        let Self { conversation, state, turn, since, .. } = self;
        let (mut prompt, mut receipt) =
            state.prompt(conversation, model, limits, (turn, since)).await?;
        let mut reply = loop {
            self.report.receipt = receipt.clone();
            let _ = events.send(TurnEvent::Report(Box::new(self.report.clone())));
            match self.binding.ask(&prompt).await {
                Err(error) if is_too_long(&error) && self.report.retries == 0 => {
                    self.state.calibrator.too_long(model, &prompt.count(), limits.window);
                    let included = receipt.included();
                    let Self { conversation, state, turn, since, .. } = self;
                    let less = receipt.used_tokens / 2;
                    (prompt, receipt) = state
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
        self.compare(reply.request());
        let _ = events.send(TurnEvent::Report(Box::new(self.report.clone())));
        let count = prompt.count();
        let (mut thoughts, mut stamps) = (ThinkingFilter::default(), StampFilter::of(&prompt));
        self.prompt = Some(prompt);
        let begun = self.text.len();
        let mut usage = loop {
            let part = match reply.next().await {
                // Text is worth storing; incomplete calls are not.
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
                    if thoughts.was_thought() {
                        self.thoughts.push(begun..self.text.len());
                        stamps = self.prompt.as_ref().map_or(stamps, StampFilter::of);
                    }
                    if !thought && thoughts.is_thinking() {
                        let _ = events.send(TurnEvent::Answer(AnswerEvent::Thinking));
                    }
                    self.hand_over(stamps.remove(&words), events);
                }
                ReplyPart::Thinking => drop(events.send(TurnEvent::Answer(AnswerEvent::Thinking))),
                ReplyPart::ToolCalls(calls) => self.calls.extend(calls),
                ReplyPart::Done(usage) => break usage,
            }
        };
        self.hand_over(stamps.remove(&thoughts.rest()), events);
        self.hand_over(stamps.rest(), events);
        usage.cut &= self.calls.is_empty();
        if let Some(counted) = usage.prompt_tokens {
            let teaches = matches!(self.turn, Utterance::Stored(_));
            let calibrator = &mut self.state.calibrator;
            self.report.truncated =
                calibrator.take_in(model, &count, counted, limits.window, teaches);
        }
        Ok(usage)
    }

    /// Compares a request with the last one: how much of its beginning is the same.
    fn compare(&mut self, request: Option<&str>) {
        let last = self.state.request.take();
        let Some(body) = request else { return };
        let same = |last: Zeroizing<String>| {
            last.bytes().zip(body.bytes()).take_while(|(last, now)| last == now).count()
        };
        self.report.unchanged_bytes = last.map(same);
        self.report.request_bytes = body.len();
        self.state.request = Some(Zeroizing::new(body.to_owned()));
    }

    fn hand_over(&mut self, words: String, events: &TurnEvents) {
        if words.is_empty() {
            return;
        }
        self.report.time_to_first_token.get_or_insert_with(|| self.begun.elapsed());
        self.text.push_str(&words);
        let _ = events.send(TurnEvent::Answer(AnswerEvent::Text(words)));
    }

    /// Stores what the turn leaves. Without `usage` the answer did not reach its end.
    async fn end(&mut self, playback_end: PlaybackEnd, usage: Option<Usage>) -> TurnEvent {
        let has_unsaid = matches!(playback_end, PlaybackEnd::UpTo(_)) && !self.calls.is_empty();
        let cut_off = match &usage {
            Some(usage) if !has_unsaid => usage.cut.then_some("length"),
            _ => Some("interrupted"),
        };
        let spoken = self.spoken(playback_end, cut_off);
        let interrupted = cut_off == Some("interrupted") || spoken.cut_off == Some("interrupted");
        let report = self.report.clone();
        self.count(if interrupted { TurnEnd::Interrupted } else { TurnEnd::Whole });
        tracing::info!(
            first_token_ms = millis(report.time_to_first_token),
            prompt_tokens = report.usage.prompt_tokens,
            unchanged_bytes = report.unchanged_bytes,
            truncated = report.truncated,
            interrupted,
            "the turn is over"
        );
        // A host that did not receive the calls has interrupted the answer before them.
        if matches!(playback_end, PlaybackEnd::Whole) && !self.calls.is_empty() {
            let mut called = self.conversation.message(ChatRole::Assistant, spoken.words.as_str());
            called.tool_calls = std::mem::take(&mut self.calls);
            self.leave(Unfinished::Calls(called));
            return TurnEvent::Done(Box::new(TurnOutcome { message: None, report }));
        }
        let spoken = self.spoken_at_all(spoken);
        let mut message = None;
        if let (Utterance::Stored(utterance), Some(mut said)) =
            (&self.turn, self.conversation.spoken_message(&spoken))
        {
            note(&mut said, &report);
            let calibrator = &mut self.state.calibrator;
            let kept = self.conversation.store_calibrated_answer(utterance, said, calibrator);
            match kept.await {
                Ok(stored) => message = Some(stored),
                Err(error @ Error::UtteranceForgotten) => {
                    self.state.pending = None;
                    self.state.request = None;
                    return TurnEvent::Failed(error);
                }
                Err(error) => {
                    self.leave(Unfinished::Failed(spoken));
                    return TurnEvent::Failed(error);
                }
            }
        }
        if interrupted {
            // It may be retried, and all spoken text is stored.
            self.leave(Unfinished::Failed(SpokenText::default()));
        } else {
            self.state.pending = None;
            self.state.off_record = !matches!(self.turn, Utterance::Stored(_));
        }
        if message.is_none() {
            self.save_calibration().await;
        }
        TurnEvent::Done(Box::new(TurnOutcome { message, report }))
    }

    fn count(&self, end: TurnEnd) {
        let (metrics, report) = (&self.conversation.parts.metrics, &self.report);
        metrics.turn(end);
        if let Some(after) = report.time_to_first_token {
            metrics.first_word(after);
        }
        let usage = &report.usage;
        metrics.tokens(usage.prompt_tokens.unwrap_or(0), usage.cached_tokens.unwrap_or(0));
        metrics.recalled(report.receipt.recalled());
    }

    async fn save_calibration(&mut self) {
        if let Utterance::Stored(_) = self.turn {
            self.state.calibrator.save(&*self.conversation.store).await;
        }
    }

    /// The text spoken in this attempt. `cut_off` is the reason if the model stopped early.
    fn spoken(&mut self, playback_end: PlaybackEnd, cut_off: Option<&'static str>) -> SpokenText {
        let text = std::mem::take(&mut self.text);
        let failed = cut_off == Some("failed");
        let part = match playback_end {
            PlaybackEnd::UpTo(chars) => beginning(&text, chars).map(Zeroizing::new),
            PlaybackEnd::Whole => None,
        };
        match part {
            Some(part) => {
                let words = String::clone(&self.answer(&part));
                SpokenText::part(words, if failed { "failed" } else { "interrupted" })
            }
            None => SpokenText { words: self.answer(&text), cut_off },
        }
    }

    /// The beginning of the text, or all of it, without what turned out to be thoughts.
    fn answer(&self, text: &str) -> Zeroizing<String> {
        let mut words = Zeroizing::new(text.to_owned());
        for thought in self.thoughts.iter().rev() {
            words.drain(thought.start.min(text.len())..thought.end.min(text.len()));
        }
        words
    }

    /// The text spoken in this attempt, or else in the attempt before.
    fn spoken_at_all(&mut self, spoken: SpokenText) -> SpokenText {
        if spoken.is_nothing() { std::mem::take(&mut self.before) } else { spoken }
    }

    /// Leaves the utterance pending.
    fn leave(&mut self, unfinished: Unfinished) {
        if let Some(pending) = &mut self.state.pending {
            pending.unfinished = unfinished;
        }
    }
}

/// Writes the figures of a turn into its answer's metadata.
fn note(message: &mut ChatMessage, report: &TurnReport) {
    let usage = &report.usage;
    let recalled = Some(report.receipt.recalled() as u64).filter(|recalled| *recalled > 0);
    for (name, figure) in [
        (PROMPT_TOKENS, usage.prompt_tokens),
        (CACHED_TOKENS, usage.cached_tokens),
        (ANSWER_TOKENS, usage.answer_tokens),
        (FIRST_WORD_MS, millis(report.time_to_first_token)),
        (RECALLED, recalled),
    ] {
        if let Some(figure) = figure {
            message.metadata.insert(name.to_owned(), figure.to_string());
        }
    }
}

fn is_too_long(error: &Error) -> bool {
    matches!(error, Error::Model { failure: ModelFailure::PromptTooLong, .. })
}

fn millis(time: Option<Duration>) -> Option<u64> {
    time.and_then(|time| u64::try_from(time.as_millis()).ok())
}
