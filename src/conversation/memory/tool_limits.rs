//! Limits of the conversation's own functions: how much a model may read with them.

use crate::message::ToolCall;

pub(super) const READ_ARTIFACT: &str = "read_artifact";
#[cfg(feature = "recall")]
pub(super) const SEARCH_MEMORY: &str = "search_memory";
const FUNCTIONS: &[&str] = &[
    READ_ARTIFACT,
    #[cfg(feature = "recall")]
    SEARCH_MEMORY,
];

/// The estimated bytes of a token.
const TOKEN: usize = 4;

/// Limits of what a model may read beyond its prompt.
///
/// A model that can call functions is offered `read_artifact(id, from, lines)` and, with the feature `recall`,
/// `search_memory(words)`. The host's own functions must have other names. For other models, and if no calls are allowed, the prompt holds short text
/// artifacts together with the note that refers to them, as long as the note is in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct MemoryTools {
    /// The most calls in one answer; 8 unless set. 0 offers no functions.
    pub calls: usize,
    /// The most bytes that one call returns; 8 KiB unless set. All calls of an answer together return at most a third
    /// of the model's window, and one call at most half of that.
    pub bytes: usize,
    /// The largest artifact, in bytes, that the prompt of a model without functions may hold; 4 KiB unless set, and
    /// never more than an eighth of the prompt. 0 includes none.
    pub(crate) inline: usize,
}

impl Default for MemoryTools {
    fn default() -> Self {
        Self { calls: 8, bytes: 8 << 10, inline: 4 << 10 }
    }
}

impl MemoryTools {
    /// Sets the most calls in one answer.
    pub fn calls(mut self, calls: usize) -> Self {
        self.calls = calls;
        self
    }

    /// Sets the most bytes that one call returns.
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets the largest artifact in the prompt of a model without functions.
    pub fn inline(mut self, bytes: usize) -> Self {
        self.inline = bytes;
        self
    }

    /// Whether a call is to one of these functions.
    pub(crate) fn has(&self, call: &ToolCall) -> bool {
        self.calls > 0 && FUNCTIONS.contains(&call.name.as_str())
    }

    /// How many bytes the next call may return if earlier calls of the answer returned `given`.
    pub(crate) fn room(&self, window: Option<u32>, given: usize) -> usize {
        let Some(window) = window else { return self.bytes };
        let all = window as usize * TOKEN / 3;
        self.bytes.min(all / 2).min(all.saturating_sub(given))
    }
}
