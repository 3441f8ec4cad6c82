//! What a model writes about a conversation, and what it takes out of the prompt.

mod prune;
mod summarize;
mod title;
pub(super) mod writer;

pub use summarize::SummaryReport;
