//! Model-written summaries and titles, and pruning.

mod prune;
mod summarize;
mod title;
pub(super) mod writer;

pub use summarize::SummaryReport;
