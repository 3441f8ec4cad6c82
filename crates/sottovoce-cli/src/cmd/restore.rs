//! `sottovoce restore`

use std::path::PathBuf;
use std::sync::Arc;

use sottovoce::EncryptionKey;
use sottovoce::admin::store_keys;
use sottovoce::config::ConfiguredKey;
use sottovoce::import::Backup;

use crate::cmd::import::import_backup;
use crate::cmd::key::{read, wrong};
use crate::exit::{Failure, Outcome};
use crate::session::Session;
use crate::{output, secret};

const HELP: &str = "\
Examples:
  sottovoce restore ~/backup.sottovoce --key-file ~/key.backup    what `sottovoce key export --to` wrote
  sottovoce restore ~/backup.sottovoce --passphrase               of a store with a passphrase";

/// Puts a backup into a new place, under the key that it was made with
///
/// For a new machine, or a store that was lost. The key must open the backup, or nothing is written; no key is made. The
/// key's copy becomes the key file here, and each conversation becomes what it was. If it is interrupted, run it again.
/// Into a store that has a key of its own, `sottovoce import backup` adds what it lacks.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The backup, as `sottovoce export --sealed --all` wrote it
    file: PathBuf,

    /// A copy of the key
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase")]
    key_file: Option<PathBuf>,

    /// Asks for the passphrase
    #[arg(long)]
    passphrase: bool,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let backup = Backup::new(&args.file);
    if let Some(copy) = &args.key_file {
        let key = read(copy)?;
        backup.key(Arc::clone(&key)).check()?;
        put(session, &key)?;
        return import_backup(session, Backup::new(args.file)).await;
    }
    let Some(keys) = (if args.passphrase { None } else { session.known_keys()? }) else {
        return with_passphrase(session, args).await;
    };
    keys.into_iter().fold(backup, Backup::key).check()?;
    import_backup(session, Backup::new(args.file)).await
}

async fn with_passphrase(session: &Session, args: Args) -> Outcome {
    let help = "give a copy of it with --key-file, or ask for a passphrase with --passphrase";
    if !args.passphrase {
        return Err(Failure::input("the key that opens the backup is not here", help));
    }
    let text = secret::ask_passphrase("Passphrase of the backup")?.ok_or_else(|| {
        Failure::input("there is no terminal to ask at", "give it with --passphrase-fd")
    })?;
    let short = secret::is_short(&text);
    let key = Arc::new(EncryptionKey::from_passphrase(text)?);
    Backup::new(&args.file).key(Arc::clone(&key)).check()?;
    let from = "the terminal".to_owned();
    let session = session.with(|config| config.key = ConfiguredKey::Secret { key, short, from })?;
    import_backup(&session, Backup::new(args.file)).await
}

/// Makes the key that of the store here. Refuses to replace another.
fn put(session: &Session, key: &Arc<EncryptionKey>) -> Result<(), Failure> {
    let config = session.config()?;
    if let ConfiguredKey::Secret { from, .. } = &config.key {
        let what = format!("the key is given by {from}, so no key file is used");
        return Err(Failure::input(what, "leave --key-file out, or remove that setting"));
    }
    let root = config.storage_root()?;
    match store_keys(&root, std::slice::from_ref(key))?.first() {
        Some(first) if !first.is_held() => return Err(wrong(&root, first)),
        _ => {}
    }
    let place = config.key_file()?;
    if key.write_file(&place)? {
        output::note(&format!("the key is in {}", place.display()));
    } else if read(&place)?.to_hex() != key.to_hex() {
        let what = format!("another key is in {}", place.display());
        let help = "move it away if it belongs to no store that you need";
        return Err(Failure::input(what, help));
    }
    Ok(())
}
