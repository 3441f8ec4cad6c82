//! The numbers by which the database stores roles, levels, kinds and actions

use crate::api::{Action, Hex, Kind, Level, Role};
use crate::database::Row;
use crate::error::{Error, Result};

const ROLES: [Role; 3] = [Role::Member, Role::Admin, Role::Owner];
const LEVELS: [Level; 3] = [Level::Read, Level::Write, Level::Manage];
const KINDS: [Kind; 3] = [Kind::Message, Kind::Setting, Kind::Forgetting];
/// In the order of their numbers. New ones are added at the end.
const ACTIONS: [Action; 15] = [
    Action::CreateOrganisation,
    Action::Invite,
    Action::Accept,
    Action::Withdraw,
    Action::ChangeRole,
    Action::Remove,
    Action::IssueToken,
    Action::RevokeToken,
    Action::CreateConversation,
    Action::DeleteConversation,
    Action::Grant,
    Action::RevokeGrant,
    Action::Forget,
    Action::DeleteArtifact,
    Action::Export,
];

/// A value that the database stores as a number.
pub(super) trait Stored: Copy + PartialEq + 'static {
    /// All values, in the order of their numbers from 1.
    const ALL: &'static [Self];

    /// Its number.
    fn number(self) -> i64 {
        Self::ALL.iter().position(|value| *value == self).map_or(0, |at| at as i64 + 1)
    }

    /// The value with this number.
    fn from_number(number: i64) -> Option<Self> {
        usize::try_from(number).ok()?.checked_sub(1).and_then(|at| Self::ALL.get(at)).copied()
    }

    /// The value in a column.
    fn read(row: &Row, column: usize) -> Result<Self> {
        Self::from_number(row.int(column)).ok_or_else(unreadable)
    }
}

impl Stored for Role {
    const ALL: &'static [Self] = &ROLES;
}

impl Stored for Level {
    const ALL: &'static [Self] = &LEVELS;
}

impl Stored for Kind {
    const ALL: &'static [Self] = &KINDS;
}

impl Stored for Action {
    const ALL: &'static [Self] = &ACTIONS;
}

/// The identifier in a column.
pub(super) fn id<const N: usize>(row: &Row, column: usize) -> Result<Hex<N>> {
    row.bytes(column).and_then(Hex::from_slice).ok_or_else(unreadable)
}

fn unreadable() -> Error {
    Error::Database { code: "a stored value is unknown to this version".to_owned() }
}
