//! Turns errors of the library into the exceptions of `sottovoce._errors`.

use pyo3::{PyErr, import_exception};
use sottovoce::model::ModelFailure;
use sottovoce::persona::PersonaFailure;
use sottovoce::{Error, with_causes};

import_exception!(sottovoce._errors, SottovoceError);
import_exception!(sottovoce._errors, NoKeyError);
import_exception!(sottovoce._errors, WrongKeyError);
import_exception!(sottovoce._errors, ConfigError);
import_exception!(sottovoce._errors, InvalidError);
import_exception!(sottovoce._errors, NoSuchConversationError);
import_exception!(sottovoce._errors, ConversationOverError);
import_exception!(sottovoce._errors, BusyError);
import_exception!(sottovoce._errors, ForgottenError);
import_exception!(sottovoce._errors, StorageError);
import_exception!(sottovoce._errors, ModelError);
import_exception!(sottovoce._errors, ModelUnreachableError);
import_exception!(sottovoce._errors, ClosedError);
import_exception!(sottovoce._errors, ForkedError);

/// The exception for an error of the library, with its causes and its help.
#[allow(clippy::needless_pass_by_value, reason = "as map_err hands it over")]
pub(crate) fn raise(error: Error) -> PyErr {
    let said = (with_causes(&error), error.help());
    match error {
        Error::NoKey
        | Error::PlaceholderKey
        | Error::EmptyKey
        | Error::EmptyPassphrase
        | Error::PassphraseNeeded { .. }
        | Error::KeyFile { .. }
        | Error::KeyLost { .. } => NoKeyError::new_err(said),
        Error::WrongKey { .. } | Error::KeyChanged { .. } => WrongKeyError::new_err(said),
        Error::Config { .. } => ConfigError::new_err(said),
        Error::TooLarge { .. }
        | Error::InvalidMessage { .. }
        | Error::InvalidScope { .. }
        | Error::FromTheFuture
        | Error::OtherScope
        | Error::NothingToRetry => InvalidError::new_err(said),
        Error::Persona(PersonaFailure::NoSuchConversation { .. }) => {
            NoSuchConversationError::new_err(said)
        }
        Error::Persona(
            PersonaFailure::Expired { .. }
            | PersonaFailure::Deleted { .. }
            | PersonaFailure::Full { .. },
        ) => ConversationOverError::new_err(said),
        Error::TurnInProgress | Error::LockTimeout { .. } | Error::Conflict => {
            BusyError::new_err(said)
        }
        Error::UtteranceForgotten => ForgottenError::new_err(said),
        Error::Model {
            failure: ModelFailure::Unreachable(_) | ModelFailure::TimedOut { .. },
            ..
        } => ModelUnreachableError::new_err(said),
        Error::Model { .. } | Error::NoModel => ModelError::new_err(said),
        Error::ShuttingDown => ClosedError::new_err(said),
        Error::VaultMissing { .. }
        | Error::VaultDamaged { .. }
        | Error::TooManyKeys { .. }
        | Error::Damaged { .. }
        | Error::NewerFormat { .. }
        | Error::NotDurable { .. }
        | Error::Poisoned { .. }
        | Error::NoSpace { .. }
        | Error::FolderReplaced { .. }
        | Error::NotPlain { .. }
        | Error::Partial { .. }
        | Error::Io { .. }
        | Error::Exhausted { .. }
        | Error::NoMemory
        | Error::NoRandomness
        | Error::ClockBehind { .. } => StorageError::new_err(said),
        _ => SottovoceError::new_err(said),
    }
}

/// The exception for a call after [`close`](crate::store::Store).
pub(crate) fn closed() -> PyErr {
    ClosedError::new_err(("the store was closed", "open it again with Store()"))
}

/// The exception for a wrong argument.
pub(crate) fn invalid(what: impl Into<String>, help: &'static str) -> PyErr {
    InvalidError::new_err((what.into(), help))
}
