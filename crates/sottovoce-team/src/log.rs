//! A shared conversation's log at the server: read, stored here, and appended to

pub(crate) mod artifact;
pub(crate) mod contents;
pub(crate) mod pull;
mod push;
mod settings;
pub(crate) mod withheld;

use sottovoce::exchange::Exchange;
use sottovoce_sync::{Problem, SyncReport};
use sottovoce_team_api::Id;

use crate::log::contents::Keys;
use crate::server::{Server, conversation_path};
use crate::state::Shared;

/// One conversation and its log.
pub(crate) struct Log<'a> {
    pub(crate) server: &'a Server,
    pub(crate) team: Id,
    pub(crate) id: Id,
    /// This store, as the server knows it.
    pub(crate) device: Id,
    pub(crate) keys: &'a Keys,
    pub(crate) exchange: &'a Exchange,
}

impl Log<'_> {
    pub(crate) fn path(&self) -> String {
        conversation_path(self.team, self.id)
    }
}

/// Reports once what is wrong with a conversation's log.
pub(crate) fn note_problem(report: &mut SyncReport, shared: &Shared, reason: &'static str) {
    let problem = Problem::Unusable { place: shared.scope.clone(), reason };
    if !report.problems.contains(&problem) {
        report.problems.push(problem);
    }
}
