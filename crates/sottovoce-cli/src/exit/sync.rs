//! Exit codes and advice for errors of syncing, with devices and with teams.

use sottovoce_remote::{Action, ErrorKind, RemoteError};
use sottovoce_sync::{Failure, SyncError};
#[cfg(feature = "team")]
use sottovoce_team::TeamError;

use crate::exit::Exit;

/// The exit code for an error.
pub(super) fn code(error: &SyncError) -> Exit {
    match error {
        error if error.is_transient() => Exit::Later,
        SyncError::Store(error) => super::code(error),
        SyncError::InvalidCode { .. } => Exit::Misused,
        SyncError::Remote(error) if is_of_the_address(error) => Exit::Misused,
        _ => Exit::Failed,
    }
}

/// The exit code for an error of a team.
#[cfg(feature = "team")]
pub(super) fn code_of_team(error: &TeamError) -> Exit {
    match error {
        TeamError::Sync(error) => code(error),
        TeamError::InvalidLink { .. } => Exit::Misused,
        _ => Exit::Failed,
    }
}

/// What to do about it: the library's advice, or a command if one helps.
pub(super) fn help(error: &SyncError) -> &'static str {
    match error {
        SyncError::Store(error) => super::help(error),
        SyncError::Remote(error) => match error.kind() {
            ErrorKind::Unreachable => {
                "check the network and the server; nothing is lost, and the next sync goes on from there"
            }
            ErrorKind::Refused => {
                "check the credentials and their rights; `sottovoce sync --help` tells where they come from"
            }
            ErrorKind::NoContainer => {
                "create the bucket, the container or the folder, or mount the file server; check the address"
            }
            ErrorKind::TooLarge => {
                "something else than Sottovoce has written there; see what it is"
            }
            _ if is_of_the_address(error) => {
                "write it as `sottovoce sync init --help` shows, and see that the credentials are as it says"
            }
            _ => {
                "check the server, or the disk and its rights; nothing is lost, and the next sync goes on from there"
            }
        },
        SyncError::Object { .. } => {
            "see whether something else writes there; `sottovoce sync --from-start` reads everything again"
        }
        SyncError::NoRandom => "see that /dev/urandom can be read",
        SyncError::NotSetUp => {
            "`sottovoce sync init ADDRESS` begins a space; `sottovoce device join CODE` joins one"
        }
        SyncError::SetUpAlready { .. } => {
            "`sottovoce sync stop` ends that; nothing is deleted by it on this device"
        }
        SyncError::InvalidCode { .. } => {
            "show the code again on a device of the space: `sottovoce device add`"
        }
        SyncError::EmptySpace { .. } => {
            "check the address and the credentials, and run `sottovoce sync` on a device of the space"
        }
        SyncError::Closed => {
            "show a code on a device of the new space (`sottovoce device add`), then run `sottovoce device join CODE` here"
        }
        SyncError::NoSuchDevice { .. } => "`sottovoce device list` shows the devices",
        SyncError::State { .. } => {
            "`sottovoce sync stop` ends syncing; then join the space again with a code of another device"
        }
        SyncError::Contested => {
            "another copy of this store may be syncing at the same time: give each its own, with `sottovoce sync stop` and `sottovoce device join CODE`"
        }
        error => error.help().unwrap_or("run the command again with --verbose"),
    }
}

/// What to do about an error of a team.
#[cfg(feature = "team")]
pub(super) fn help_of_team(error: &TeamError) -> &'static str {
    match error {
        TeamError::Sync(error) => help(error),
        TeamError::NoTeam => {
            "`sottovoce team join LINK` joins one; `sottovoce team create LINK NAME` begins one"
        }
        TeamError::SeveralTeams => "name one with --team; `sottovoce team status` lists them",
        TeamError::InvalidLink { .. } => "ask for the link again: `sottovoce team invite` shows it",
        TeamError::SeveralMembers { .. } => {
            "name one by the id that `sottovoce team members` shows"
        }
        TeamError::NotNamed { .. } => "say it in a named one, such as `--room plans`",
        TeamError::NoSuch { .. } => {
            "`sottovoce team status` and `sottovoce team members` show what there is"
        }
        TeamError::NotAMember { .. } => {
            "ask for a new link (`sottovoce team invite`); what is on this device stays"
        }
        error => error.help().unwrap_or("run the command again with --verbose"),
    }
}

/// Whether the remote was not even asked.
fn is_of_the_address(error: &RemoteError) -> bool {
    error.action() == Action::Open && error.kind() == ErrorKind::Other
}
