//! How much a model may read with the conversation's own functions.

use crate::message::ToolCall;

pub(super) const READ_ARTIFACT: &str = "read_artifact";
pub(super) const SEARCH_MEMORY: &str = "search_memory";

/// Estimated bytes of a token.
const TOKEN: usize = 4;

/// How much a model may read beyond its prompt.
///
/// A model that can call functions is offered `read_artifact(id, from, lines)` and `search_memory(words)`; a host's own
/// functions must have other names. For other models, and where no calls are allowed, short artifacts that are text stand
/// in the prompt with the note that refers to them, as long as that is in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryTools {
    /// The most calls of one answer; 8 unless set. 0 offers no functions.
    pub calls: usize,
    /// The most bytes that one call gives; 8 KiB unless set. All calls of an answer together give at most a third of the
    /// model's window, and one of them half of that.
    pub bytes: usize,
    /// The most bytes of an artifact that stands in the prompt of a model without functions; 4 KiB unless set, and never
    /// more than an eighth of the prompt. 0 puts none there.
    pub inline: usize,
}

impl Default for MemoryTools {
    fn default() -> Self {
        Self { calls: 8, bytes: 8 << 10, inline: 4 << 10 }
    }
}

impl MemoryTools {
    /// The most calls of one answer.
    #[must_use]
    pub fn calls(mut self, calls: usize) -> Self {
        self.calls = calls;
        self
    }

    /// The most bytes that one call gives.
    #[must_use]
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// The most bytes of an artifact that stands in the prompt of a model without functions.
    #[must_use]
    pub fn inline(mut self, bytes: usize) -> Self {
        self.inline = bytes;
        self
    }

    /// Whether a function is one of these.
    pub(crate) fn has(&self, call: &ToolCall) -> bool {
        self.calls > 0 && [READ_ARTIFACT, SEARCH_MEMORY].contains(&call.name.as_str())
    }

    /// How many bytes the next call may give, of an answer that was given so many.
    pub(crate) fn room(&self, window: Option<u32>, given: usize) -> usize {
        let Some(window) = window else { return self.bytes };
        let all = window as usize * TOKEN / 3;
        self.bytes.min(all / 2).min(all.saturating_sub(given))
    }
}
