//! What answers say, and how each kind of server says it.

use std::collections::VecDeque;
use std::fmt;

use super::words::{Joiner, Words};
use crate::message::ToolCall;
use crate::model::Usage;

/// A part of an answer. `Debug` shows no words.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum ReplyItem {
    /// Words, which may still be [thoughts](crate::model::without_thoughts).
    Text(String),
    /// The number of bytes of a thought. Its text is dropped.
    Thought(usize),
    /// A call begins. Its first piece has this many bytes.
    Call(usize),
    /// More bytes of a call's arguments.
    Arguments(usize),
    /// All calls. They were counted before.
    Calls(Vec<RawCall>),
    /// The id of the answer, by which a request may continue it.
    Id(String),
    /// The end of the answer.
    Done(Usage),
    /// The server reports an error.
    Complaint(String),
    /// Another machine has written the answer.
    Remote,
}

/// A call whose arguments are still text. Parsed values take many times the memory, so the text is counted first.
/// `Debug` shows no words.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawCall {
    /// The call's id, if the server gives one.
    pub id: String,
    /// The function.
    pub name: String,
    /// The arguments as JSON.
    pub arguments: String,
}

impl RawCall {
    pub(super) fn bytes(&self) -> usize {
        self.id.len() + self.name.len() + self.arguments.len()
    }

    /// Parses the arguments; `None` if they are not JSON.
    pub(in crate::model) fn parsed(self) -> Option<ToolCall> {
        let arguments = serde_json::from_str(&self.arguments).ok()?;
        Some(ToolCall { id: self.id, name: self.name, arguments })
    }
}

/// The format of a server's answers.
pub(super) trait Protocol: Send + Sync {
    /// Reads an object and adds its items. The error says what is wrong with it.
    fn read(&mut self, json: &[u8], said: &mut Said) -> Result<(), &'static str>;

    /// Adds what is known only at the end of the answer. `is_marked` if `[DONE]` says so.
    fn end(&mut self, is_marked: bool, said: &mut Said);
}

/// The items of an answer that nobody has taken yet.
#[derive(Default)]
pub(super) struct Said {
    pub(super) items: VecDeque<Result<ReplyItem, &'static str>>,
    joiner: Joiner,
}

impl Said {
    /// Adds words. A character may be cut in two between them and the next ones.
    pub(super) fn words(&mut self, words: &Words) {
        let text = self.joiner.join(words);
        self.text(text);
    }

    fn text(&mut self, text: String) {
        if !text.is_empty() {
            self.items.push_back(Ok(ReplyItem::Text(text)));
        }
    }

    pub(super) fn add(&mut self, item: ReplyItem) {
        if matches!(item, ReplyItem::Done(_)) {
            let rest = self.joiner.rest();
            self.text(rest);
        }
        self.items.push_back(Ok(item));
    }
}

impl fmt::Debug for ReplyItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::Thought(bytes) => write!(f, "Thought({bytes} bytes)"),
            Self::Call(bytes) => write!(f, "Call({bytes} bytes)"),
            Self::Arguments(bytes) => write!(f, "Arguments({bytes} bytes)"),
            Self::Calls(calls) => write!(f, "Calls({})", calls.len()),
            Self::Id(_) => f.write_str("Id"),
            Self::Done(usage) => f.debug_tuple("Done").field(usage).finish(),
            Self::Complaint(_) => f.write_str("Complaint"),
            Self::Remote => f.write_str("Remote"),
        }
    }
}

impl fmt::Debug for RawCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawCall({} bytes)", self.bytes())
    }
}
