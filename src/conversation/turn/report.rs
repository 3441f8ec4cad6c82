//! The figures of one turn.

use std::time::Duration;

use serde::Serialize;

use crate::model::{Usage, millis};
use crate::prompt::Receipt;

/// The figures of one turn. It holds numbers and reasons, never words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TurnReport {
    /// From the start of the turn to the first text of the answer, if there was any. In JSON these times are
    /// milliseconds.
    #[serde(rename = "timeToFirstTokenMs", serialize_with = "millis")]
    pub time_to_first_token: Option<Duration>,
    /// From the start of the turn to the end of the answer.
    #[serde(rename = "wholeMs", serialize_with = "millis")]
    pub whole_time: Option<Duration>,
    /// The usage that the server reports.
    pub usage: Usage,
    /// The model's window for prompt and answer in tokens, if the server reports it.
    pub window: Option<u32>,
    /// The size of the request in bytes.
    pub request_bytes: usize,
    /// How many bytes at the beginning equal those of the last request. A server need not read them again. `None` for
    /// the first request.
    pub unchanged_bytes: Option<usize>,
    /// Whether the server seems to have cut the prompt unasked.
    pub truncated: bool,
    /// How often the request was sent again with less history because the server found it too long.
    pub retries: u32,
    /// How many functions the conversation ran for the model, to read artifacts or earlier messages.
    pub lookups: u32,
    /// The receipt of the prompt.
    pub receipt: Receipt,
}

impl TurnReport {
    /// The share of the request that the server need not read again, 0 to 1.
    pub fn unchanged_share(&self) -> Option<f64> {
        // Requests are far too small for a loss of precision.
        #[expect(clippy::cast_precision_loss)]
        self.unchanged_bytes.map(|bytes| bytes as f64 / self.request_bytes.max(1) as f64)
    }
}
