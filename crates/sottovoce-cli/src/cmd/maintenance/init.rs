//! `sottovoce init`

use std::sync::Arc;

use serde::Serialize;
use sottovoce::admin::store_exists;
use sottovoce::config::ConfiguredKey;
use sottovoce::{Config, EncryptionKey};

use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::passphrase;
use crate::session::{Session, announce_key, announce_salt};

/// Creates the key of a new store, if there is none yet, and shows where it is
///
/// Without the key nobody can ever read the stored messages: keep a copy in a safe place that is not this machine.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Derives the key from a passphrase, which the command asks for, instead of a key file
    #[arg(long)]
    passphrase: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Made<'a> {
    key_file: Option<&'a std::path::Path>,
    made: bool,
}

pub(crate) fn run(session: &Session, args: &Args) -> Outcome {
    let mut config = session.config()?;
    if args.passphrase {
        return of_passphrase(session, &mut config);
    }
    if let ConfiguredKey::Secret { from, .. } = &config.key {
        return Err(Failure::input(
            format!("the key is given by {from}, so no key file is needed"),
            "remove it first if you want a key file for a new store",
        ));
    }
    let key_file = config.key_file()?;
    let made = !key_file.exists();
    config.make_key_file()?;
    if session.json {
        output::json(&Made { key_file: Some(&key_file), made })?;
    } else if made {
        announce_key(&key_file);
    } else {
        output::note(&format!("the key file already exists: {}", key_file.display()));
    }
    Ok(Exit::Done)
}

fn of_passphrase(session: &Session, config: &mut Config) -> Outcome {
    let root = config.storage_root()?;
    if store_exists(&root)? {
        return Err(Failure::input(
            format!("a store already exists in {}", root.display()),
            "`sottovoce rekey --to-passphrase` changes its key",
        ));
    }
    if EncryptionKey::read_file(&config.key_file()?)?.is_some() {
        return Err(Failure::input(
            format!("a key file already exists: {}", config.key_file()?.display()),
            "move it away first",
        ));
    }
    if !matches!(config.key, ConfiguredKey::Secret { .. }) {
        let text = passphrase::ask_new()?.ok_or_else(|| {
            Failure::input(
                "there is no terminal to ask at",
                "give the passphrase with --passphrase-fd",
            )
        })?;
        let short = passphrase::is_short(&text);
        config.key = ConfiguredKey::Secret {
            key: Arc::new(EncryptionKey::from_passphrase(text)?),
            short,
            from: "the terminal".to_owned(),
        };
    }
    config.make_key_file()?;
    if !store_exists(&root)? {
        return Err(Failure::input(
            "the configured key is not a passphrase",
            "remove it, or run `sottovoce init` without --passphrase",
        ));
    }
    if matches!(config.key, ConfiguredKey::Secret { short: true, .. }) {
        passphrase::warn_of_short();
    }
    if session.json {
        output::json(&Made { key_file: None, made: true })?;
    } else {
        announce_salt(&config.salt_folder()?);
    }
    Ok(Exit::Done)
}
