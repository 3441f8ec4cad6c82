//! What to do about errors and findings. The library names no commands.

use std::io::{self, ErrorKind};

use serde::Serialize;
use sottovoce::Error;
use sottovoce::model::ModelFailure;
use sottovoce::persona::PersonaFailure;
use sottovoce::prompt::Receipt;
use sottovoce::store::{Finding, FindingKind};
#[cfg(feature = "share")]
use sottovoce_remote::{Action, ErrorKind as Kind, RemoteError};
#[cfg(feature = "share")]
use sottovoce_sync::SyncError;
#[cfg(feature = "share")]
use sottovoce_team::TeamError;

/// What to do about an error: the library's advice, or a command if one helps.
pub(crate) fn help(error: &Error) -> &'static str {
    match error {
        Error::NoKey | Error::PlaceholderKey => {
            "nothing is stored yet; `sottovoce init` makes a key file, as the first message does"
        }
        Error::KeyFile { .. } => {
            "`sottovoce doctor` shows what is wrong with it; if it is lost, restore it from your backup"
        }
        Error::VaultMissing { .. } => {
            "restore `vault` from a backup; for a passphrase, a copy lies beside the key file; for other keys, `sottovoce repair` rebuilds it from the records"
        }
        Error::VaultDamaged { .. } => {
            "replace it by its copy `vault.…` from the configuration folder; without a copy, move it out of the store's folder and run `sottovoce repair`, which rebuilds it for key files and secret strings"
        }
        Error::TooManyKeys { .. } => {
            "finish a change of keys with `sottovoce rekey` to the key in use now; if some files do not open, add `--leave-unreadable`"
        }
        Error::Damaged { .. } => {
            "run `sottovoce verify` to find other damage; restore the file from a backup, or let `sottovoce repair` repair what it can"
        }
        Error::NoSuchSnapshot { .. } => "`sottovoce snapshot list` shows all of them",
        Error::NoSuchArtifact { .. } => "`sottovoce artifact list` shows all of them",
        // What a file system cannot do at all is no fault of the disk.
        Error::NotDurable { source, .. }
            if matches!(source.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) =>
        {
            error.help()
        }
        Error::NotDurable { .. } | Error::Poisoned { .. } => {
            "check the disk and run `sottovoce verify`, then run the command again"
        }
        Error::Io { source, .. } if source.kind() == ErrorKind::Unsupported => {
            "docs/backup-and-keys.md says which file systems hold a store"
        }
        Error::Io { .. } => {
            "check that the path exists and that this user may use it; `sottovoce doctor` checks both"
        }
        Error::Model { failure: ModelFailure::NoSuchModel { .. }, .. } => {
            "download it, for Ollama with `ollama pull`, or set LanguageModel.Model to one of `sottovoce models`"
        }
        Error::Persona(failure) => match failure {
            PersonaFailure::NoSuchConversation { .. } => {
                "`sottovoce context list --all` shows all of them"
            }
            PersonaFailure::NoSuchPreset { .. } => {
                "`sottovoce persona list --all` shows all of them"
            }
            PersonaFailure::Expired { .. } => "extend it with `sottovoce context extend`",
            PersonaFailure::Deleted { .. } => {
                "restore it with `sottovoce context update --active true`"
            }
            PersonaFailure::NotBackedUp { .. } => {
                "`sottovoce verify --all` shows what is wrong with them"
            }
            _ => error.help(),
        },
        _ => error.help(),
    }
}

/// What to do about an error of syncing.
#[cfg(feature = "share")]
pub(crate) fn sync_help(error: &SyncError) -> &'static str {
    match error {
        SyncError::Store(error) => help(error),
        SyncError::Remote(error) => match error.kind() {
            sottovoce_remote::ErrorKind::Unreachable => {
                "check the network and the server; nothing is lost, and the next sync goes on from there"
            }
            sottovoce_remote::ErrorKind::Refused => {
                "check the credentials and their rights; `sottovoce sync --help` tells where they come from"
            }
            sottovoce_remote::ErrorKind::NoContainer => {
                "create the bucket, the container or the folder, or mount the file server; check the address"
            }
            sottovoce_remote::ErrorKind::TooLarge => {
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
        SyncError::Absent { .. } => {
            "see whether the folder is mounted; if it was emptied, run `sottovoce sync --mend` on a device that has its messages"
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
#[cfg(feature = "share")]
pub(crate) fn team_help(error: &TeamError) -> &'static str {
    match error {
        TeamError::Sync(SyncError::Remote(remote)) if remote.kind() != Kind::Unreachable => {
            error.help().unwrap_or("run the command again with --verbose")
        }
        TeamError::Sync(error) => sync_help(error),
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
#[cfg(feature = "share")]
pub(crate) fn is_of_the_address(error: &RemoteError) -> bool {
    error.action() == Action::Open && error.kind() == sottovoce_remote::ErrorKind::Other
}

/// A finding as JSON, with its advice in `help`.
#[derive(Debug, Serialize)]
pub(crate) struct FindingRow<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    help: &'static str,
}

impl<'a> FindingRow<'a> {
    pub(crate) fn new(finding: &'a Finding) -> Self {
        Self { finding, help: advice(finding) }
    }

    pub(crate) fn all(findings: &'a [Finding]) -> Vec<Self> {
        findings.iter().map(Self::new).collect()
    }
}

/// A receipt as JSON, with advice for its findings.
pub(crate) fn receipt_json(receipt: &Receipt) -> io::Result<String> {
    let json = serde_json::to_string(receipt)?;
    // Quotes in strings are escaped, so this key occurs nowhere else.
    let of = |findings: String| format!("\"skipped\":{findings}");
    let plain = of(serde_json::to_string(&receipt.skipped)?);
    let advised = of(serde_json::to_string(&FindingRow::all(&receipt.skipped))?);
    Ok(json.replacen(&plain, &advised, 1))
}

/// What to do about a finding, in one line.
pub(crate) fn advice(finding: &Finding) -> &'static str {
    use FindingKind as Kind;
    let is_packed = finding.file.as_deref().is_some_and(|file| file.starts_with("packs"));
    match &finding.kind {
        Kind::WrongKey { .. } => "give the key that it was sealed under",
        Kind::UnboundKey { .. } => {
            "finish a change of keys with `sottovoce rekey`; if none was begun, `sottovoce repair --quarantine` removes the key from the vault"
        }
        Kind::Damaged(_) if is_packed => {
            "`sottovoce repair` rebuilds the pack from the readable records"
        }
        Kind::Unopenable | Kind::Damaged(_) | Kind::BadRecord => {
            "restore it from a backup; `sottovoce repair --quarantine` moves it out of the way"
        }
        Kind::LegacyFormat | Kind::Foreign | Kind::NotPlain(_) => {
            "move it away if it is yours, or let `sottovoce repair --quarantine` do it"
        }
        Kind::DuplicateNumber => "read both; `sottovoce forget` deletes both",
        Kind::NewerFormat(_) => "use the newer program that wrote it",
        Kind::Unreadable(_) => "check the disk and the file's mode, then try again",
        Kind::Missing | Kind::TailTruncated | Kind::Vanished => {
            "restore them from a backup, or record each as gone: `sottovoce forget NUMBER`"
        }
        Kind::PutBack { .. } => {
            "put the newer copy back, or go on with this one: `sottovoce repair` records the numbers as gone; forget again what was forgotten since"
        }
        Kind::ForgetMissing => {
            "restore it from a backup, or forget the messages again: `sottovoce forget NUMBER`"
        }
        Kind::HeadMissing | Kind::HeadDamaged => {
            "`sottovoce repair` writes a new one from the existing records"
        }
        Kind::VaultMissing => {
            "restore `vault` from a backup, or let `sottovoce repair` rebuild it from the records"
        }
        Kind::Resurrected | Kind::Leftover | Kind::RedundantCopy => {
            "`sottovoce repair` cleans this up at once"
        }
        Kind::Unlisted => {
            "if you want to keep it, `sottovoce repair --catalog` lists it again; if it was removed, remove it again"
        }
        Kind::Absent | Kind::Outdated => {
            "restore the newest version from a backup, or continue without it: `sottovoce repair`, for a whole conversation `sottovoce repair --catalog`"
        }
        Kind::HardLinked => "find the other name and remove it: `find / -samefile FILE`",
        Kind::RolledBack | Kind::TombstoneLost | Kind::Replaced => {
            "look for the newer folder before you write anything: `sottovoce forget` and appends continue from this state"
        }
        Kind::NotCompared => "take a new one: `sottovoce verify --save FILE`",
        Kind::Dangling { .. } => {
            "`sottovoce artifact list` shows the artifacts; you need not do anything"
        }
        Kind::Quarantined { .. } => "look through it, and delete it if you need nothing in it",
        _ => "`sottovoce repair --dry-run` shows what can be repaired",
    }
}
