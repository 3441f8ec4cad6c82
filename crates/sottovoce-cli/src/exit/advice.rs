//! Advice for errors that names this program's commands.

use std::io::ErrorKind;

use sottovoce::Error;
use sottovoce::model::ModelFailure;
use sottovoce::persona::PersonaFailure;

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
