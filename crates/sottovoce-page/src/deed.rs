//! What goes on longer than one request: what was announced and waits for a second step, turns, checks and counts.

mod announced;
mod tallies;
mod turns;
mod verifying;

pub(crate) use announced::{Announced, Plan};
pub(crate) use tallies::{Day, Tallies, Tally};
pub(crate) use turns::{LastTurn, LastTurns, RunningTurns};
pub(crate) use verifying::{Verified, Verifying};
