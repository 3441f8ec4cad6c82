//! What all requests share.

use std::pin::Pin;
use std::sync::Arc;

use sottovoce::Error;
use sottovoce::store::Finding;

use crate::deed::{Announced, LastTurns, RunningTurns, Tallies, Verifying};
use crate::house::House;

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

/// Runs all checks of the set-up.
pub type Checks = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Vec<Check>> + Send>> + Send + Sync>;

/// What all requests share.
pub(crate) struct App {
    pub(crate) house: House,
    pub(crate) advice: Advice,
    pub(crate) checks: Option<Checks>,
    pub(crate) read_only: bool,
    pub(crate) announced: Announced,
    pub(crate) running: RunningTurns,
    pub(crate) last_turns: LastTurns,
    pub(crate) verifying: Verifying,
    pub(crate) tallies: Tallies,
}

impl App {
    pub(crate) fn new(
        house: House,
        advice: Advice,
        checks: Option<Checks>,
        read_only: bool,
    ) -> Self {
        let (announced, running, last_turns, verifying, tallies) = Default::default();
        Self {
            house,
            advice,
            checks,
            read_only,
            announced,
            running,
            last_turns,
            verifying,
            tallies,
        }
    }

    /// Forgets what was worked out of the store, and the key if it was typed on the page.
    pub(crate) fn lock(&self) {
        self.announced.clear();
        self.last_turns.clear();
        self.tallies.clear();
        self.house.lock();
    }
}
