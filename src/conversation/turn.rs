//! Turns: an utterance is stored, the model is asked, its answer is delivered and stored.

mod answer;
mod calibrator;
mod host_model;
mod prompt;
mod report;
mod sentences;
mod start;
mod state;
mod task;

pub use answer::{Answer, AnswerEvent, TurnOutcome};
pub use host_model::{HostTurn, PreparedTurn};
pub use report::TurnReport;
pub use sentences::Sentences;
pub(super) use state::{LastUtterance, TurnState};
