//! Whose words recall brings into prompts by itself.

use serde::Deserialize;

#[cfg(feature = "recall")]
use crate::message::Source;

/// Whose words recall brings into prompts by itself.
#[cfg_attr(
    not(feature = "recall"),
    expect(unreachable_pub, reason = "a setting is read without it")
)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RecallSources {
    /// What people said here or to a member of their team.
    People,
    /// Also what clients and other programs brought, what the assistant answered, and what a document says if the question
    /// asks for it.
    #[default]
    Said,
    /// Also documents that the question does not ask for.
    All,
}

#[cfg(feature = "recall")]
impl RecallSources {
    /// Whether words from there may come in. What tools and the host's notes say never does.
    pub(crate) fn has(self, source: Source) -> bool {
        match source {
            Source::Spoken | Source::Typed | Source::Member | Source::Unknown => true,
            Source::Tool | Source::Note => false,
            _ => self != Self::People,
        }
    }
}
