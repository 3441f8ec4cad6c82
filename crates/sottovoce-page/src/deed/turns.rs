//! Turns that were begun on the page: the running ones, so that they can be stopped, and the prompts of the last ones.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use jiff::Zoned;
use sottovoce::Scope;
use sottovoce::conversation::TurnReport;
use sottovoce_net::lock;
use tokio::sync::oneshot;

/// How many turns of a conversation are remembered, and of how many conversations.
const TURNS: usize = 8;
const SCOPES: usize = 64;

/// The running turns, by number.
#[derive(Default)]
pub(crate) struct RunningTurns(Mutex<(u64, HashMap<u64, oneshot::Sender<usize>>)>);

impl RunningTurns {
    /// A number for a turn, and what receives how many characters were shown once it is stopped.
    pub(crate) fn begin(&self) -> (u64, oneshot::Receiver<usize>) {
        let (sender, receiver) = oneshot::channel();
        let mut running = lock(&self.0);
        let (last, turns) = &mut *running;
        turns.retain(|_, turn| !turn.is_closed());
        *last += 1;
        turns.insert(*last, sender);
        (*last, receiver)
    }

    /// Stops a turn. Returns whether it was running.
    pub(crate) fn stop(&self, number: u64, chars: usize) -> bool {
        let turn = lock(&self.0).1.remove(&number);
        turn.is_some_and(|turn| turn.send(chars).is_ok())
    }
}

/// A turn that has ended.
#[derive(Clone)]
pub(crate) struct LastTurn {
    pub(crate) at: Zoned,
    /// The number of the utterance, unless it was off the record.
    pub(crate) utterance: Option<u64>,
    pub(crate) report: TurnReport,
}

/// The last turns of each conversation, newest first.
#[derive(Default)]
pub(crate) struct LastTurns(Mutex<HashMap<Scope, VecDeque<LastTurn>>>);

impl LastTurns {
    pub(crate) fn add(&self, scope: &Scope, turn: LastTurn) {
        let mut all = lock(&self.0);
        if all.len() >= SCOPES && !all.contains_key(scope) {
            all.clear();
        }
        let turns = all.entry(scope.clone()).or_default();
        turns.push_front(turn);
        turns.truncate(TURNS);
    }

    pub(crate) fn of(&self, scope: &Scope) -> Vec<LastTurn> {
        let all = lock(&self.0);
        all.get(scope).into_iter().flatten().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        lock(&self.0).clear();
    }
}
