//! Advice for errors that names this program's commands.

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
            "`sottovoce doctor` tells what is wrong with it; if it is lost, restore it from your backup"
        }
        Error::VaultMissing { .. } => {
            "restore `vault` from a backup, for a passphrase its copy beside the key file; for other keys `sottovoce repair` makes one that fits the records"
        }
        Error::VaultDamaged { .. } => {
            "put its copy `vault.…` from the configuration folder in its place; if there is none, move it out of the store's folder and run `sottovoce repair`, which makes it anew for key files and secret strings"
        }
        Error::TooManyKeys { .. } => {
            "end a change that was begun, with `sottovoce rekey` to the key that writes now; if some files do not open, add `--leave-unreadable`"
        }
        Error::Damaged { .. } => {
            "run `sottovoce verify` for the whole picture; restore the file from a backup, or have `sottovoce repair` mend what it can"
        }
        Error::NoSuchSnapshot { .. } => "`sottovoce snapshot list` shows all there are",
        Error::NoSuchArtifact { .. } => "`sottovoce artifact list` shows all there are",
        Error::NotDurable { .. } | Error::Poisoned { .. } => {
            "check the disk and run `sottovoce verify`, then run the command again"
        }
        Error::Io { .. } => {
            "check that the path exists and that this user may use it; `sottovoce doctor` looks"
        }
        Error::Model { failure: ModelFailure::NoSuchModel { .. }, .. } => {
            "fetch it, for Ollama with `ollama pull`, or set LanguageModel.Model to one of `sottovoce models`"
        }
        Error::Persona(failure) => match failure {
            PersonaFailure::NoSuchConversation { .. } => {
                "`sottovoce context list --all` shows all there are"
            }
            PersonaFailure::NoSuchPreset { .. } => {
                "`sottovoce persona list --all` shows all there are"
            }
            PersonaFailure::Expired { .. } => "extend it, with `sottovoce context extend`",
            PersonaFailure::Deleted { .. } => {
                "take it back, with `sottovoce context update --active true`"
            }
            PersonaFailure::NotBackedUp { .. } => {
                "`sottovoce verify --all` tells what is wrong with them"
            }
            _ => error.help(),
        },
        _ => error.help(),
    }
}
