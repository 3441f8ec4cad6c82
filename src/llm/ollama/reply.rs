//! An answer, piece by piece.

use std::collections::VecDeque;
use std::fmt;

use async_trait::async_trait;

use super::answer::Answer;
use super::buffer::Buffer;
use super::chunk::Chunk;
use crate::error::{Error, Result};
use crate::llm::{Reply, ReplyPart};

/// The most bytes of one line of an answer.
const LINE: usize = 1 << 20;

/// An answer of an Ollama server. Dropping it closes the connection, at which the server stops.
///
/// A call of [`Reply::next`] that is dropped loses nothing; the next one goes on where it was.
pub struct OllamaReply {
    answer: Answer,
    received: Buffer,
    ready: VecDeque<ReplyPart>,
    thinking: bool,
    begun: bool,
    allow_cloud: bool,
    over: bool,
}

impl fmt::Debug for OllamaReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OllamaReply")
            .field("server", &self.answer.address())
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

impl OllamaReply {
    pub(super) fn new(answer: Answer) -> Self {
        Self {
            answer,
            received: Buffer::default(),
            ready: VecDeque::new(),
            thinking: false,
            begun: false,
            allow_cloud: false,
            over: false,
        }
    }

    /// Whether an answer that another machine wrote is handed on; it is not by default.
    #[must_use]
    pub fn allow_cloud(mut self, allow: bool) -> Self {
        self.allow_cloud = allow;
        self
    }

    async fn receive(&mut self) -> Result<ReplyPart> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Ok(part);
            }
            if let Some(line) = self.received.line() {
                let chunk = read(line);
                self.take(chunk)?;
            } else if self.received.len() > LINE {
                return Err(self.answer.unintelligible("a line of it is longer than 1 MiB"));
            } else if !self.answer.more(&mut self.received).await? {
                let chunk = read(self.received.rest());
                self.take(chunk)?;
                if self.ready.is_empty() {
                    return Err(self.answer.broke_off("it ended too early"));
                }
            }
        }
    }

    fn take(&mut self, chunk: Option<Chunk>) -> Result<()> {
        let chunk = chunk.ok_or_else(|| {
            self.answer.unintelligible("a line of it is not the JSON that Ollama sends")
        })?;
        match chunk.complaint() {
            // It may quote what the model said or thought, which nobody has noted.
            Some(_) if self.begun => {
                return Err(self.answer.broke_off("the server met an error, which its log tells"));
            }
            Some(complaint) => return Err(self.answer.complaint(complaint)),
            None => {}
        }
        if chunk.is_remote() && !self.allow_cloud {
            return Err(self.answer.cloud());
        }
        for part in chunk.into_parts() {
            let thought = matches!(part, ReplyPart::Thinking);
            if !(thought && self.thinking) {
                self.ready.push_back(part);
            }
            self.thinking = thought;
            self.begun = true;
        }
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
impl Reply for OllamaReply {
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
}

/// A line's content; that of an empty line is empty.
fn read(line: &[u8]) -> Option<Chunk> {
    match line.trim_ascii() {
        [] => Some(Chunk::default()),
        // A list would be read as the fields in their order.
        line @ [b'{', ..] => serde_json::from_slice(line).ok(),
        _ => None,
    }
}
