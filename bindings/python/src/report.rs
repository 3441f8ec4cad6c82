//! The figures of a turn.

use pyo3::prelude::*;
use sottovoce::conversation::TurnReport;

use crate::prompt::Receipt;

/// The figures of a turn. Times are seconds, tokens are those that the server reports.
#[pyclass(frozen, get_all, module = "sottovoce")]
#[derive(Debug)]
pub(crate) struct Report {
    /// From the start of the turn to the first words.
    time_to_first_token: Option<f64>,
    /// From the start of the turn to its end.
    whole_time: Option<f64>,
    /// Tokens of the prompt.
    prompt_tokens: Option<u64>,
    /// Tokens of the prompt that came from the server's cache.
    cached_tokens: Option<u64>,
    /// Tokens of the answer.
    answer_tokens: Option<u64>,
    /// The model's window in tokens.
    window: Option<u32>,
    /// Whether the server seems to have cut the prompt unasked.
    truncated: bool,
    /// How often the prompt was sent again with less history because it was too long.
    retries: u32,
    /// What is in the prompt, what is not, and why.
    receipt: Py<Receipt>,
}

impl Report {
    pub(crate) fn new(py: Python<'_>, report: &TurnReport) -> PyResult<Self> {
        Ok(Self {
            time_to_first_token: report.time_to_first_token.map(|time| time.as_secs_f64()),
            whole_time: report.whole_time.map(|time| time.as_secs_f64()),
            prompt_tokens: report.usage.prompt_tokens,
            cached_tokens: report.usage.cached_tokens,
            answer_tokens: report.usage.answer_tokens,
            window: report.window,
            truncated: report.truncated,
            retries: report.retries,
            receipt: Py::new(py, Receipt::from(&report.receipt))?,
        })
    }
}

#[pymethods]
impl Report {
    fn __repr__(&self) -> String {
        let tokens = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
        let (prompt, answer) = (tokens(self.prompt_tokens), tokens(self.answer_tokens));
        format!("<Report {prompt} tokens read, {answer} tokens answered>")
    }
}
