//! Limits of one answer, and their enforcement.

use std::time::Duration;

use tokio::time::Instant;
#[cfg(feature = "ollama")]
use tokio::time::timeout_at;

use super::{Reply, ReplyPart};
use crate::error::{AnswerLimit, Error, ModelFailure, Result};
use crate::message::ToolCall;

/// Limits of one answer. An answer that exceeds one is cut off: the connection is closed, and the text so far is
/// stored as cut off. This bounds the cost of a model that repeats itself, or of a server that never ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerLimits {
    /// The most bytes of text, thoughts and tool calls together; 256 KiB unless set. The network may carry 512 times
    /// as much plus 1 MiB, because each word comes in a line of JSON.
    pub bytes: usize,
    /// The most tool calls; 64 unless set.
    pub calls: usize,
    /// The longest time from the start of the answer to its end; ten minutes unless set.
    pub time: Duration,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self { bytes: 256 << 10, calls: 64, time: Duration::from_secs(600) }
    }
}

/// Measures one answer.
#[derive(Debug)]
#[cfg_attr(not(feature = "ollama"), allow(dead_code, reason = "only servers send bytes"))]
pub(crate) struct ReplyMeter {
    limits: AnswerLimits,
    received: usize,
    bytes: usize,
    calls: usize,
    until: Option<Instant>,
}

impl ReplyMeter {
    /// A meter for an answer that begins now.
    pub(crate) fn new(limits: AnswerLimits) -> Self {
        let until = Instant::now().checked_add(limits.time);
        Self { limits, received: 0, bytes: 0, calls: 0, until }
    }

    /// Waits for a piece of the answer within its time limit. Needs a runtime with timers.
    #[cfg(feature = "ollama")]
    pub(crate) async fn within<T>(&self, part: impl Future<Output = T>) -> Result<T, AnswerLimit> {
        let Some(until) = self.until else { return Ok(part.await) };
        timeout_at(until, part).await.map_err(|_| self.seconds())
    }

    /// Fails if the time is up.
    fn look_at_the_time(&self) -> Result<(), AnswerLimit> {
        match self.until {
            Some(until) if until <= Instant::now() => Err(self.seconds()),
            _ => Ok(()),
        }
    }

    fn seconds(&self) -> AnswerLimit {
        let seconds = self.limits.time.as_millis().div_ceil(1000);
        AnswerLimit::Seconds(u64::try_from(seconds).unwrap_or(u64::MAX))
    }

    /// Counts bytes of text, thoughts or calls.
    pub(crate) fn count(&mut self, bytes: usize) -> Result<(), AnswerLimit> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.bytes {
            return Err(AnswerLimit::Bytes(self.limits.bytes));
        }
        Ok(())
    }

    /// Counts text, and cuts it at the limit.
    pub(crate) fn text(&mut self, text: &mut String) -> Result<(), AnswerLimit> {
        let mut room = self.limits.bytes.saturating_sub(self.bytes).min(text.len());
        let counted = self.count(text.len());
        while !text.is_char_boundary(room) {
            room -= 1;
        }
        text.truncate(room);
        counted
    }

    /// Counts a call with its bytes of name and arguments.
    pub(crate) fn call(&mut self, bytes: usize) -> Result<(), AnswerLimit> {
        self.calls += 1;
        if self.calls > self.limits.calls {
            return Err(AnswerLimit::Calls(self.limits.calls));
        }
        self.count(bytes)
    }

    /// Counts bytes received over the network.
    #[cfg(feature = "ollama")]
    pub(crate) fn receive(&mut self, bytes: usize) -> Result<(), AnswerLimit> {
        self.received = self.received.saturating_add(bytes);
        let most = self.limits.bytes.saturating_mul(512).saturating_add(1 << 20);
        if self.received > most {
            return Err(AnswerLimit::Received(most));
        }
        Ok(())
    }

    /// The longest line in bytes: a whole answer as JSON.
    #[cfg(feature = "ollama")]
    pub(crate) fn longest_line(&self) -> usize {
        self.limits.bytes.saturating_mul(4).max(1 << 20)
    }
}

/// A reply that enforces limits on any model. The model itself limits how long it may be silent.
pub(crate) struct LimitedReply {
    reply: Box<dyn Reply>,
    model: String,
    meter: ReplyMeter,
    passed: Option<AnswerLimit>,
}

impl LimitedReply {
    pub(crate) fn new(reply: Box<dyn Reply>, model: &str, limits: AnswerLimits) -> Self {
        Self { reply, model: model.to_owned(), meter: ReplyMeter::new(limits), passed: None }
    }

    /// The next part. When a limit is exceeded, the part that still fits comes first, then [`ModelFailure::TooMuch`].
    pub(crate) async fn next(&mut self) -> Result<ReplyPart> {
        if let Some(limit) = self.passed {
            return Err(self.too_much(limit));
        }
        self.meter.look_at_the_time().map_err(|limit| self.too_much(limit))?;
        let mut part = self.reply.next().await?;
        let counted = match &mut part {
            ReplyPart::Text(text) => {
                self.passed = self.meter.text(text).err();
                Ok(())
            }
            ReplyPart::Thinking => self.meter.count(1),
            ReplyPart::ToolCalls(calls) => {
                calls.iter().try_for_each(|call| self.meter.call(bytes(call)))
            }
            ReplyPart::Done(_) => Ok(()),
        };
        counted.map_err(|limit| self.too_much(limit))?;
        Ok(part)
    }

    pub(crate) fn request(&self) -> Option<&str> {
        self.reply.request()
    }

    fn too_much(&self, limit: AnswerLimit) -> Error {
        Error::Model { server: self.model.clone(), failure: ModelFailure::TooMuch { limit } }
    }
}

fn bytes(call: &ToolCall) -> usize {
    call.id.len() + call.name.len() + call.arguments.to_string().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_between_characters_and_the_limit_stays_passed() {
        let mut meter = ReplyMeter::new(AnswerLimits { bytes: 5, ..AnswerLimits::default() });
        let mut text = "éé".to_owned();
        assert_eq!(meter.text(&mut text), Ok(()));
        assert_eq!(text, "éé");
        let mut text = "éa".to_owned();
        assert_eq!(meter.text(&mut text), Err(AnswerLimit::Bytes(5)));
        assert_eq!(text, "");
        assert_eq!(meter.count(0), Err(AnswerLimit::Bytes(5)));
    }
}
