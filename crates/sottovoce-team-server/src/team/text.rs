//! The numbers by which the database stores roles, levels, kinds and actions

use crate::api::{Action, Hex, Kind, Level, Role};
use crate::database::Row;
use crate::error::{Error, Result};

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
    const ALL: &'static [Self] = &[Self::Member, Self::Admin, Self::Owner];
}

impl Stored for Level {
    const ALL: &'static [Self] = &[Self::Read, Self::Write, Self::Manage];
}

impl Stored for Kind {
    const ALL: &'static [Self] = &[Self::Message, Self::Setting, Self::Forgetting];
}

impl Stored for Action {
    /// New ones are added at the end.
    const ALL: &'static [Self] = &[
        Self::CreateOrganisation,
        Self::Invite,
        Self::Accept,
        Self::Withdraw,
        Self::ChangeRole,
        Self::Remove,
        Self::IssueToken,
        Self::RevokeToken,
        Self::CreateConversation,
        Self::DeleteConversation,
        Self::Grant,
        Self::RevokeGrant,
        Self::Forget,
        Self::DeleteArtifact,
        Self::Export,
    ];
}

/// The identifier in a column.
pub(super) fn id<const N: usize>(row: &Row, column: usize) -> Result<Hex<N>> {
    row.bytes(column).and_then(Hex::from_slice).ok_or_else(unreadable)
}

fn unreadable() -> Error {
    Error::Database { code: "a stored value is unknown to this version".to_owned() }
}
