//! A model's answer in pieces, parsed from its HTTP body.

use std::collections::VecDeque;
use std::fmt;

use async_trait::async_trait;

use super::answer::Answer;
use super::buffer::Buffer;
use crate::error::{AnswerLimit, Error, Result};
use crate::message::ToolCall;
use crate::model::limits::ReplyMeter;
use crate::model::{Reply, ReplyPart, Usage};

/// The format of a server's answers.
pub(crate) trait Protocol: Send {
    /// Parses a line and adds its items. The error says what is wrong with the line.
    fn read(&mut self, line: &[u8], said: &mut Vec<ReplyItem>) -> Result<(), &'static str>;

    /// Adds what is known only at the end of the answer.
    fn end(&mut self, _said: &mut Vec<ReplyItem>) -> Result<(), &'static str> {
        Ok(())
    }
}

/// A parsed item of an answer.
pub(crate) enum ReplyItem {
    Text(String),
    /// The number of bytes of a thought. Its text is dropped.
    Thought(usize),
    /// A call begins. Its first piece has this many bytes.
    Call(usize),
    /// More bytes of a call's arguments.
    Arguments(usize),
    /// All calls. They were counted before.
    Calls(Vec<RawCall>),
    Done(Usage),
    /// The server reports an error.
    Complaint(String),
    /// Another machine has written the answer.
    Remote,
}

/// A call whose arguments are still text. Parsed values take many times the memory, so the text is counted first.
pub(crate) struct RawCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl RawCall {
    pub(crate) fn bytes(&self) -> usize {
        self.id.len() + self.name.len() + self.arguments.len()
    }

    /// Parses the arguments; `None` if they are not JSON.
    fn parsed(self) -> Option<ToolCall> {
        let arguments = serde_json::from_str(&self.arguments).ok()?;
        Some(ToolCall { id: self.id, name: self.name, arguments })
    }
}

/// An answer of a model server. Dropping it closes the connection, and the server then stops.
///
/// A dropped call of [`Reply::next`] loses nothing; the next call continues.
pub struct HttpReply {
    answer: Answer,
    protocol: Box<dyn Protocol>,
    received: Buffer,
    meter: ReplyMeter,
    ready: VecDeque<Result<ReplyPart>>,
    thinking: bool,
    allow_cloud: bool,
    over: bool,
}

impl fmt::Debug for HttpReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpReply")
            .field("server", &self.answer.address())
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

impl HttpReply {
    pub(crate) fn new(answer: Answer, protocol: impl Protocol + 'static) -> Self {
        Self {
            meter: answer.meter(),
            answer,
            protocol: Box::new(protocol),
            received: Buffer::default(),
            ready: VecDeque::new(),
            thinking: false,
            allow_cloud: false,
            over: false,
        }
    }

    /// Sets whether to accept an answer that another machine wrote; the default is no.
    #[must_use]
    pub fn allow_cloud(mut self, allow: bool) -> Self {
        self.allow_cloud = allow;
        self
    }

    async fn receive(&mut self) -> Result<ReplyPart> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return part;
            }
            let mut said = Vec::new();
            let line = if self.answer.comes_in_lines() { self.received.line() } else { None };
            let read = if let Some(line) = line {
                self.protocol.read(line, &mut said)
            } else if self.received.len() > self.meter.longest_line() {
                Err("one of its lines exceeds the limit of an answer")
            } else {
                let before = self.received.len();
                let more = self.meter.within(self.answer.more(&mut self.received)).await;
                if more.map_err(|limit| self.answer.too_much(limit))?? {
                    let bytes = self.received.len().saturating_sub(before);
                    self.meter.receive(bytes).map_err(|limit| self.answer.too_much(limit))?;
                    continue;
                }
                let read = self.protocol.read(self.received.rest(), &mut said);
                let ended = read.and_then(|()| self.protocol.end(&mut said));
                if said.is_empty() && ended.is_ok() {
                    return Err(self.answer.broke_off("it ended too early"));
                }
                ended
            };
            let taken = said.into_iter().try_for_each(|said| self.take(said));
            let read = read.map_err(|reason| self.answer.unintelligible(reason));
            if let Err(error) = taken.and(read) {
                self.ready.push_back(Err(error));
            }
        }
    }

    fn take(&mut self, said: ReplyItem) -> Result<()> {
        let too_much = |limit: AnswerLimit| self.answer.too_much(limit);
        let part = match said {
            ReplyItem::Text(mut text) => {
                let counted = self.meter.text(&mut text).map_err(too_much);
                self.ready.push_back(Ok(ReplyPart::Text(text)));
                self.thinking = false;
                return counted;
            }
            ReplyItem::Thought(bytes) => {
                self.meter.count(bytes).map_err(too_much)?;
                if std::mem::replace(&mut self.thinking, true) {
                    return Ok(());
                }
                ReplyPart::Thinking
            }
            ReplyItem::Call(bytes) => return self.meter.call(bytes).map_err(too_much),
            ReplyItem::Arguments(bytes) => return self.meter.count(bytes).map_err(too_much),
            ReplyItem::Complaint(text) => return Err(self.answer.complaint(&text)),
            ReplyItem::Remote if self.allow_cloud => return Ok(()),
            ReplyItem::Remote => return Err(self.answer.cloud()),
            ReplyItem::Calls(calls) => {
                let parsed = calls.into_iter().map(RawCall::parsed).collect::<Option<_>>();
                let odd =
                    || self.answer.unintelligible("the arguments of a tool call are not JSON");
                ReplyPart::ToolCalls(parsed.ok_or_else(odd)?)
            }
            ReplyItem::Done(usage) => ReplyPart::Done(usage),
        };
        self.thinking = matches!(part, ReplyPart::Thinking);
        self.ready.push_back(Ok(part));
        Ok(())
    }

    fn note(&self, part: &Result<ReplyPart>) {
        match part {
            Ok(ReplyPart::Done(usage)) => tracing::debug!(
                server = self.answer.address(),
                prompt_tokens = usage.prompt_tokens,
                cached_tokens = usage.cached_tokens,
                answer_tokens = usage.answer_tokens,
                load_time = ?usage.load_time,
                prompt_time = ?usage.prompt_time,
                answer_time = ?usage.answer_time,
                cut = usage.cut,
                "answered"
            ),
            Err(Error::Model { failure, .. }) => tracing::debug!(%failure, "no whole answer"),
            _ => {}
        }
    }
}

#[async_trait]
impl Reply for HttpReply {
    async fn next(&mut self) -> Result<ReplyPart> {
        if self.over {
            return Err(self.answer.broke_off("it is over"));
        }
        let part = self.receive().await;
        self.over =
            !matches!(part, Ok(ReplyPart::Text(_) | ReplyPart::Thinking | ReplyPart::ToolCalls(_)));
        self.note(&part);
        part
    }

    fn request(&self) -> Option<&str> {
        self.answer.request()
    }
}
