//! `sottovoce import elara`

use std::path::PathBuf;

use sottovoce_import::{ElaraFolder, Reader};

use super::keys::Sources;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce import elara --dry-run                 what is in Elara's usual folder?
  sottovoce import elara ~/old --ask-key           types the keys, unseen
  ELARA_KEY=… sottovoce import elara --key-env ELARA_KEY";

/// Imports a folder of Elara, the voice assistant in C#
///
/// Reads every format that its versions wrote. One folder may hold plain files and files under several keys. Most
/// folders are plain, because Elara's key is empty by default. A file under another key and a damaged file look the
/// same: both are refused as "wrong key or damaged", and another run with the right key imports them. The folder is
/// not changed: plain text in it stays until you delete it.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The folder [default: Elara's own]
    dir: Option<PathBuf>,

    #[command(flatten)]
    keys: Sources,

    /// Shows what would be imported, and stores nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let path = match args.dir {
        Some(path) => path,
        None => usual()?,
    };
    let mut folder = ElaraFolder::new(path);
    let Some(keys) = args.keys.read()? else {
        return Ok(Exit::Interrupted);
    };
    for key in keys {
        folder = folder.key(&key);
    }
    let bar = output::progress(Some(0), "reading");
    let shown = bar.clone();
    let imported = folder.read(move |progress| super::advance(&shown, progress)).await;
    bar.finish_and_clear();
    super::keep(session, imported?, args.dry_run).await
}

fn usual() -> Result<PathBuf, Failure> {
    let path = ElaraFolder::usual_path().ok_or_else(|| {
        Failure::input("there is no home folder to look for Elara's in", "name the folder")
    })?;
    output::note(&format!("reading Elara's usual folder {}", path.display()));
    Ok(path)
}
