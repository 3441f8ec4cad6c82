//! Errors as clients receive them

use serde::{Deserialize, Serialize};

/// Why a request failed: problem details of RFC 9457. It holds neither contents nor secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// The status of the answer.
    pub status: u16,
    /// A fixed word for programs, such as `not-found`.
    pub code: String,
    /// What happened, and where.
    pub title: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Problem {
    /// A problem.
    pub fn new(status: u16, code: &str, title: &str, help: Option<&str>) -> Self {
        Self {
            status,
            code: code.to_owned(),
            title: title.to_owned(),
            help: help.map(str::to_owned),
        }
    }
}
