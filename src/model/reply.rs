//! A reply: a model's answer in pieces.

use std::collections::VecDeque;
use std::fmt;

use async_trait::async_trait;
use tokio::sync::mpsc::Receiver;

use super::Usage;
use crate::error::{Error, Result};
use crate::message::ToolCall;

/// A model's answer while it arrives. Dropping the reply tells the model to stop.
///
/// A `String` converts into a reply that is complete at once. The receiving half of a tokio channel is a reply that
/// arrives in pieces.
#[async_trait]
pub trait Reply: Send {
    /// Waits for the next piece. [`ReplyPart::Done`] is the last one; a reply that ends without it is an error.
    async fn next(&mut self) -> Result<ReplyPart>;

    /// The request as sent to a server, if one was sent. The turn's report compares it with the request before.
    fn request(&self) -> Option<&str> {
        None
    }
}

/// A piece of a reply. `Debug` shows no words.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum ReplyPart {
    /// Text to be spoken.
    Text(String),
    /// The model is thinking. Its thoughts are neither shown nor stored.
    Thinking,
    /// The model asks the host to run these functions.
    ToolCalls(Vec<ToolCall>),
    /// The end of the reply, with its cost.
    Done(Usage),
}

impl fmt::Debug for ReplyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Thinking => f.write_str("Thinking"),
            Self::ToolCalls(calls) => write!(f, "ToolCalls({})", calls.len()),
            Self::Done(usage) => f.debug_tuple("Done").field(usage).finish(),
        }
    }
}

/// A model that drops its sender ends the reply. Without [`ReplyPart::Done`] before, that is an error.
#[async_trait]
impl Reply for Receiver<Result<ReplyPart>> {
    async fn next(&mut self) -> Result<ReplyPart> {
        let ended = || Err(Error::host("the model", "its reply ended without ReplyPart::Done"));
        self.recv().await.unwrap_or_else(ended)
    }
}

/// A reply that is complete.
struct Complete(VecDeque<ReplyPart>);

#[async_trait]
impl Reply for Complete {
    async fn next(&mut self) -> Result<ReplyPart> {
        Ok(self.0.pop_front().unwrap_or_else(|| ReplyPart::Done(Usage::default())))
    }
}

impl From<String> for Box<dyn Reply> {
    fn from(text: String) -> Self {
        Box::new(Complete([ReplyPart::Text(text)].into()))
    }
}

impl From<&str> for Box<dyn Reply> {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Vec<ReplyPart>> for Box<dyn Reply> {
    fn from(parts: Vec<ReplyPart>) -> Self {
        Box::new(Complete(parts.into()))
    }
}
