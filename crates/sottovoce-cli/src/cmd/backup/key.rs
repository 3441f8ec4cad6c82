//! `sottovoce key`

mod check;
mod export;

use std::path::Path;
use std::sync::Arc;

use sottovoce::admin::{StoreKey, store_keys};
use sottovoce::{EncryptionKey, Error};

use crate::exit::{Failure, Outcome};
use crate::session::Session;

/// Checks the key, or copies it to a safe place
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Check(check::Args),
    Export(export::Args),
}

pub(crate) fn run(session: &Session, args: Args) -> Outcome {
    match args.verb {
        Verb::Check(args) => check::run(session, args),
        Verb::Export(args) => export::run(session, args),
    }
}

/// The keys of an existing store.
fn of_store(root: &Path, keys: &[Arc<EncryptionKey>]) -> Result<Vec<StoreKey>, Failure> {
    let named = store_keys(root, keys)?;
    match named.is_empty() {
        false => Ok(named),
        true if sottovoce::admin::store_exists(root)? => {
            Err(Error::VaultMissing { path: root.to_owned() }.into())
        }
        true => Err(Failure::Nothing { folder: root.to_owned() }),
    }
}

/// The error for a store whose key is missing.
pub(crate) fn wrong(root: &Path, key: &StoreKey) -> Failure {
    let place = root.join("vault").display().to_string();
    Error::WrongKey { place, found: key.id().to_owned() }.into()
}
