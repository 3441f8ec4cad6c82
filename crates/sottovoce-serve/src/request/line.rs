//! What a request says: its system prompt and its messages, and where their texts stand in its body.

use std::ops::Range;

use sottovoce::{ChatRole, ToolCall};

/// A message of a request, other than the system prompt.
pub(crate) struct Line {
    pub(crate) speaker: ChatRole,
    pub(crate) text: String,
    /// The functions that an assistant's message calls.
    pub(crate) calls: Vec<ToolCall>,
    /// The call that a tool's message answers, and the function's name.
    pub(crate) call_id: Option<String>,
    pub(crate) tool: Option<String>,
    /// Where its first text stands in the request's body: a JSON string with its quotes.
    pub(crate) place: Option<Range<usize>>,
}

impl Line {
    /// A line without calls.
    pub(super) fn new(speaker: ChatRole, text: String, place: Option<Range<usize>>) -> Self {
        Self { speaker, text, calls: Vec::new(), call_id: None, tool: None, place }
    }
}

/// The system prompt's last text.
pub(crate) struct System {
    pub(crate) text: String,
    /// Where it stands in the request's body: a JSON string with its quotes.
    pub(crate) place: Range<usize>,
}

/// Why a request is not read as a part of a conversation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It may not go on, since nobody can tell what its words are. The reason is for the client, and holds no words.
    Refused(String),
    /// It belongs to no conversation, for this reason, and goes on unrecorded.
    Aside(&'static str),
}

impl From<String> for Unread {
    fn from(reason: String) -> Self {
        Self::Refused(reason)
    }
}

/// A request that belongs to a conversation. `Debug` shows no words.
#[derive(Default)]
pub(crate) struct ChatRequest {
    pub(crate) model: String,
    pub(crate) system: Option<System>,
    pub(crate) lines: Vec<Line>,
    /// What the client calls its session, if it says so.
    pub(crate) session: Option<String>,
    /// The answer that this request continues, if the server keeps the session.
    pub(crate) previous: Option<String>,
    /// The model's window in tokens, if the request sets it.
    pub(crate) window: Option<usize>,
    /// Whether it brings along the tokens of what was sent and answered before, history included.
    pub(crate) has_tokens: bool,
    /// Why it may be a program's own task.
    pub(crate) aside: Option<&'static str>,
}

impl ChatRequest {
    /// The index of the newest user's line.
    pub(crate) fn newest(&self) -> Option<usize> {
        self.lines.iter().rposition(|line| line.speaker == ChatRole::User)
    }

    /// The newest user's words.
    pub(crate) fn utterance(&self) -> &str {
        self.newest().and_then(|at| self.lines.get(at)).map_or("", |line| &line.text)
    }
}

sottovoce::debug_shows!(ChatRequest as it: lines = it.lines.len());
