//! What one turn took.

use std::time::Duration;

use serde::Serialize;

use crate::model::{Usage, millis};
use crate::prompt::Receipt;

/// The figures of one turn. It holds numbers and reasons, never words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TurnReport {
    /// From the beginning of the turn to the first words of the answer, if any came; in JSON these times are
    /// milliseconds.
    #[serde(rename = "timeToFirstTokenMs", serialize_with = "millis")]
    pub time_to_first_token: Option<Duration>,
    /// From the beginning of the turn until the answer was over.
    #[serde(rename = "wholeMs", serialize_with = "millis")]
    pub whole_time: Option<Duration>,
    /// What the server says of it.
    pub usage: Usage,
    /// Tokens of prompt and answer together that the model can take, where the server says.
    pub window: Option<u32>,
    /// Bytes of the request.
    pub request_bytes: usize,
    /// How many of them, from the first on, are those of the last request: what a server need not read again. `None`
    /// for the first request.
    pub unchanged_bytes: Option<usize>,
    /// Whether the server seems to have cut the prompt, although it was not asked to.
    pub truncated: bool,
    /// How often the request was sent again with less history, because the server found it too long.
    pub retries: u32,
    /// How many functions the conversation ran for the model, to read artifacts or what was said earlier.
    pub lookups: u32,
    /// What went into the prompt.
    pub receipt: Receipt,
}

impl TurnReport {
    /// The share of the request that the server need not read again, 0 to 1.
    pub fn unchanged_share(&self) -> Option<f64> {
        // Requests are far below the sizes at which this loses anything.
        #[expect(clippy::cast_precision_loss)]
        self.unchanged_bytes.map(|bytes| bytes as f64 / self.request_bytes.max(1) as f64)
    }
}
