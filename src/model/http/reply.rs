//! A model's answer in pieces, parsed from its HTTP body.

use std::collections::VecDeque;

use async_trait::async_trait;

use super::answer::Answer;
use crate::error::{AnswerLimit, Error, Result};
use crate::model::limits::ReplyMeter;
use crate::model::stream::{AnswerForm, AnswerReader, RawCall, ReplyItem};
use crate::model::{Reply, ReplyPart};

/// An answer of a model server. Dropping it closes the connection, and the server then stops.
///
/// A dropped call of [`Reply::next`] loses nothing; the next call continues.
pub struct HttpReply {
    answer: Answer,
    reader: AnswerReader,
    /// Whether all bytes have come.
    is_read: bool,
    meter: ReplyMeter,
    ready: VecDeque<Result<ReplyPart>>,
    thinking: bool,
    allow_cloud: bool,
    over: bool,
}

debug_shows!(HttpReply as it: server = it.answer.address(), over);

impl HttpReply {
    pub(crate) fn new(answer: Answer, form: AnswerForm) -> Self {
        Self {
            meter: answer.meter(),
            answer,
            reader: AnswerReader::new(form),
            is_read: false,
            ready: VecDeque::new(),
            thinking: false,
            allow_cloud: false,
            over: false,
        }
    }

    /// Sets whether to accept an answer that another machine wrote; the default is no.
    #[must_use]
    pub(crate) fn allow_cloud(mut self, allow: bool) -> Self {
        self.allow_cloud = allow;
        self
    }

    async fn receive(&mut self) -> Result<ReplyPart> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return part;
            }
            match self.reader.next() {
                Some(Ok(item)) => {
                    if let Err(error) = self.take(item) {
                        self.ready.push_back(Err(error));
                    }
                }
                Some(Err(reason)) => return Err(self.answer.unintelligible(reason)),
                None if self.is_read => return Err(self.answer.broke_off("it ended too early")),
                None => self.read_more().await?,
            }
        }
    }

    async fn read_more(&mut self) -> Result<()> {
        if self.reader.held() > self.meter.longest_line() {
            let reason = "one of its lines exceeds the limit of an answer";
            return Err(self.answer.unintelligible(reason));
        }
        let more = self.meter.within(self.answer.more()).await;
        match more.map_err(|limit| self.answer.too_much(limit))?? {
            Some(bytes) => {
                let bytes = bytes.as_ref();
                self.reader.push(bytes);
                self.meter.receive(bytes.len()).map_err(|limit| self.answer.too_much(limit))
            }
            None => {
                self.is_read = true;
                self.reader.finish();
                Ok(())
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
            ReplyItem::Id(_) => return Ok(()),
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
