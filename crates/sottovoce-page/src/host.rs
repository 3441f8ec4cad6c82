//! What the program around the page tells it: advice, and the checks of the set-up.

use std::pin::Pin;
use std::sync::Arc;

use sottovoce::Error;
use sottovoce::config::OpenConversations;
use sottovoce::store::Finding;

/// How the page phrases what to do about errors and findings.
#[derive(Debug, Clone, Copy)]
pub struct Advice {
    /// What to do about an error.
    pub error: fn(&Error) -> &'static str,
    /// What to do about a finding of a check.
    pub finding: fn(&Finding) -> &'static str,
}

impl Default for Advice {
    fn default() -> Self {
        Self { error: Error::help, finding: |_| "" }
    }
}

/// How a check of the set-up ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CheckState {
    /// As it should be.
    Good,
    /// Something to think about.
    Warn,
    /// Something to do.
    Bad,
}

/// One check of the set-up. Its texts hold no conversation text.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Check {
    /// What was checked, in a word.
    pub about: &'static str,
    /// How it ended.
    pub state: CheckState,
    /// What was found.
    pub what: String,
    /// What to do, one step a line.
    pub advice: Option<String>,
}

impl Check {
    /// A check and its outcome.
    pub fn new(
        about: &'static str,
        state: CheckState,
        what: impl Into<String>,
        advice: Option<String>,
    ) -> Self {
        Self { about, state, what: what.into(), advice }
    }
}

/// Checks that take a while.
type Checking = Pin<Box<dyn Future<Output = Vec<Check>> + Send>>;

/// Runs all checks of the set-up.
pub type Checks = Arc<dyn Fn() -> Checking + Send + Sync>;

/// Tells of an open store what it holds, where, for how long, who could read it, and which copies exist.
pub type Facts = Arc<dyn Fn(Arc<OpenConversations>) -> Checking + Send + Sync>;
