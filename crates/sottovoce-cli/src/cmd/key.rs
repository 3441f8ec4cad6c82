//! `sottovoce key` and `sottovoce init`

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sottovoce::admin::{StoreKey, store_exists, store_keys};
use sottovoce::config::ConfiguredKey;
use sottovoce::{EncryptionKey, Error};

use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, BAD, DIM, GOOD, WARN, object};
use crate::session::{Session, announce_key, announce_salt};
use crate::{private_file, secret};

const AFTER_HELP: &str = "\
Examples:
  sottovoce key check                       does the key open the store?
  sottovoce key export /media/stick/key     a copy, to keep away from this machine";

/// Checks the key, or copies it to a safe place
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Check(CheckArgs),
    Export(ExportArgs),
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    match args.verb {
        Verb::Check(args) => check(session, args),
        Verb::Export(args) => export(session, args).await,
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

/// The key in a file that was named.
pub(crate) fn read(path: &Path) -> Result<Arc<EncryptionKey>, Failure> {
    let missing = || Error::KeyFile { path: path.to_owned(), reason: "there is no such file" };
    Ok(Arc::new(EncryptionKey::read_file(path)?.ok_or_else(missing)?))
}

/// The error for a store whose key is missing.
pub(crate) fn wrong(root: &Path, key: &StoreKey) -> Failure {
    let place = root.join("vault").display().to_string();
    Error::WrongKey { place, found: key.id().to_owned() }.into()
}

/// Checks whether the key opens the store, and shows how it is derived
#[derive(Debug, clap::Args)]
struct CheckArgs {
    /// Checks the key in this file, such as a backup, instead of the configured one
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

fn check(session: &Session, args: CheckArgs) -> Outcome {
    let config = session.config()?;
    let root = config.storage_root()?;
    let keys = match args.key_file {
        None => session.known_keys()?.ok_or_else(|| session.nothing())?,
        Some(path) => vec![read(&path)?],
    };
    let keys = of_store(&root, &keys)?;
    let opens = keys.first().is_some_and(StoreKey::is_held);
    let unfinished = keys.len() > 1;
    if session.json {
        let row = |(at, key): (usize, &StoreKey)| {
            object!(
                "id": key.id(), "derivation": key.derivation(), "held": key.is_held(),
                "writes": at == 0,
            )
        };
        let keys: Vec<_> = keys.iter().enumerate().map(row).collect();
        // Unfinished is a change of keys.
        output::json(&object!("opens": opens, "unfinished": unfinished, "keys": keys))?;
        return Ok(if opens { Exit::Done } else { Exit::Key });
    }
    for (at, key) in keys.iter().enumerate() {
        let (style, word) = match (key.is_held(), at) {
            (true, _) => (GOOD, "opens    "),
            (false, 0) => (BAD, "not given"),
            (false, _) => (WARN, "not given"),
        };
        let role = if at == 0 { "" } else { ", being replaced" };
        output::line(format!(
            "{style}{word}{style:#}  {} {DIM}({}{role}){DIM:#}",
            key.id(),
            key.derivation()
        ))?;
    }
    if unfinished {
        output::note("a change of keys is not finished: run the same `sottovoce rekey` again");
    }
    match keys.first() {
        Some(key) if !opens => Err(wrong(&root, key)),
        _ => {
            output::note(&format!("the key opens the store in {}", root.display()));
            Ok(Exit::Done)
        }
    }
}

/// Copies the store's key to a safe place: 64 hexadecimal digits, usable as a key file
///
/// Anyone who has them can read everything in the store, even if the key is derived from a passphrase.
#[derive(Debug, clap::Args)]
struct ExportArgs {
    /// Writes a new file that only its owner can read, instead of printing the digits
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,

    /// Prints them without asking
    #[arg(long)]
    yes: bool,
}

async fn export(session: &Session, args: ExportArgs) -> Outcome {
    let config = session.config()?;
    let root = config.storage_root()?;
    if let Some(file) = &args.to {
        private_file::check(file, session)?;
    }
    let keys = session.known_keys()?.ok_or_else(|| session.nothing())?;
    let keys = of_store(&root, &keys)?;
    let key = keys.first().ok_or_else(|| session.nothing())?;
    let text = key.export().ok_or_else(|| wrong(&root, key))?;
    if let Some(file) = args.to {
        let exported = EncryptionKey::from_hex(&text).ok_or(Error::NoKey)?;
        if !exported.write_file(&file)? {
            return Err(private_file::is_there(&file));
        }
        return session.tell(object!("id": key.id(), "file": file), || {
            let (id, file) = (key.id(), file.display());
            format!(
                "wrote key {id} to {file}\n\
                 anyone who has this file can read everything: move it away from this machine\n\
                 `sottovoce key check --key-file {file}` tries it"
            )
        });
    }
    let deed = "print the key, which --to writes to a file instead";
    let question = "Show the key on this screen? Anyone who sees it can read everything.";
    let show = async || Ok(());
    if !session.agrees(args.yes, deed, question, "nothing was shown", show).await? {
        return Ok(Exit::Done);
    }
    output::note(&format!("key {} of the store in {}", key.id(), root.display()));
    output::note("put these 64 digits into a file and name it as Context.KeyFile to use it");
    output::bytes(text.as_bytes())?;
    Ok(Exit::Done)
}

/// Creates the key of a new store, if there is none yet, and shows where it is
///
/// Without the key nobody can ever read the stored messages: keep a copy in a safe place that is not this machine.
#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// Derives the key from a passphrase, which the command asks for, instead of a key file
    #[arg(long)]
    passphrase: bool,
}

pub(crate) fn init(session: &Session, args: &InitArgs) -> Outcome {
    let config = session.config()?;
    if args.passphrase {
        return of_passphrase(session);
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
    if made && !session.json {
        announce_key(&key_file);
        return Ok(Exit::Done);
    }
    session.tell(object!("keyFile": key_file, "made": made), || {
        format!("the key file already exists: {}", key_file.display())
    })
}

fn of_passphrase(session: &Session) -> Outcome {
    let mut config = session.config()?.clone();
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
        let text = secret::ask_new()?.ok_or_else(|| {
            Failure::input(
                "there is no terminal to ask at",
                "give the passphrase with --passphrase-fd",
            )
        })?;
        let short = secret::is_short(&text);
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
        secret::warn_of_short();
    }
    if session.json {
        output::json(&object!("keyFile": None::<&str>, "made": true))?;
    } else {
        announce_salt(&config.salt_folder()?);
    }
    Ok(Exit::Done)
}
