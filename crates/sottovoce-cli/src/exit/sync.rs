//! Exit codes and advice for errors of syncing.

use sottovoce_sync::{Action, ErrorKind, RemoteError, SyncError};

use crate::exit::Exit;

/// The exit code for an error.
pub(super) fn code(error: &SyncError) -> Exit {
    match error {
        error if error.is_transient() => Exit::Later,
        SyncError::Store(error) => super::code(error),
        SyncError::InvalidCode { .. } | SyncError::InvalidLink { .. } => Exit::Misused,
        SyncError::Remote(error) if is_of_the_address(error) => Exit::Misused,
        _ => Exit::Failed,
    }
}

/// What to do about it.
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
        error => error.help().unwrap_or("run the command again with --verbose"),
    }
}

/// Whether the remote was not even asked.
fn is_of_the_address(error: &RemoteError) -> bool {
    error.action() == Action::Open && error.kind() == ErrorKind::Other
}
