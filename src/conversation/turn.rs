//! Turns: an utterance is kept, the model is asked, its answer is handed over and kept.

mod answer;
mod calibrator;
mod keep;
mod prompt;
mod report;
mod sentences;
mod start;
mod state;
mod task;

pub use answer::{Answer, AnswerEvent, TurnOutcome};
pub(super) use keep::LastUtterance;
pub use report::TurnReport;
pub use sentences::Sentences;
pub(super) use state::TurnState;
