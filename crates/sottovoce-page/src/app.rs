//! What all requests share.

use crate::deed::{Announced, LastTurns, RunningTurns, Tallies, Verifying};
use crate::host::{Advice, Checks, Facts};
use crate::house::House;

/// What all requests share.
pub(crate) struct App {
    pub(crate) house: House,
    pub(crate) advice: Advice,
    pub(crate) checks: Option<Checks>,
    pub(crate) facts: Option<Facts>,
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
        facts: Option<Facts>,
        read_only: bool,
    ) -> Self {
        let (announced, running, last_turns, verifying, tallies) = Default::default();
        Self {
            house,
            advice,
            checks,
            facts,
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
