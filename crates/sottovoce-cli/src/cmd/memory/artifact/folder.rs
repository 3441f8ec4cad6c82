//! `sottovoce artifact add-folder`

mod intake;
mod tree;
mod walk;

use std::io::{self, Cursor};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use sottovoce::store::{AddedArtifact, ArtifactKind, ArtifactStore, NewArtifact};
use sottovoce::{Config, ConversationStore};

use crate::cmd::memory::artifact::source::{Watch, Wiped};
use crate::cmd::memory::artifact::{Row, description, refer, report, size};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::Session;
use intake::{Intake, Limits};
use walk::{What, walk};

const AFTER_HELP: &str = "\
Examples:
  sottovoce artifact add-folder src
  sottovoce artifact add-folder . --max-total 8MiB --no-message";

/// How many skipped entries the terminal lists. The tree lists all.
const NAMED: usize = 20;

/// Adds a folder's text files and its tree, and a message that refers to the tree
///
/// Skips hidden entries and those that .gitignore, .ignore and the user's global ignore file name. Never follows
/// links. The tree has a line for each file with its size, its lines and its artifact, or the reason why it was
/// skipped. Another run adds only changed files.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The folder
    dir: PathBuf,

    /// Skips files with more bytes than this
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = size::parse)]
    max_file_size: u64,

    /// Skips files that would make the total exceed this many bytes
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size::parse)]
    max_total: u64,

    /// Skips files beyond this number
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    max_files: u32,

    /// Adds files that are not text too
    #[arg(long)]
    binary: bool,

    /// Does not append a message that refers to the tree
    #[arg(long)]
    no_message: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Done<'a> {
    /// The number of added files.
    added: u64,
    /// The number of files whose bytes were stored already.
    same: u64,
    left_out: &'a [LeftOut],
    folder: Row<'a>,
}

/// A skipped entry with the reason.
#[derive(Debug, Serialize)]
struct LeftOut {
    path: String,
    reason: String,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let root = folder(&args.dir)?;
    let name = name(&args.dir, &root);
    let config = session.config()?;
    let watch = Arc::new(Watch::default());
    let mut interrupt = Interrupt::listen()?;

    let spinner = output::progress(None, "looking");
    let never = never(&config)?;
    let walking = {
        let (root, watch) = (root.clone(), Arc::clone(&watch));
        tokio::task::spawn_blocking(move || walk(&root, &never, &watch))
    };
    let entries = tokio::select! {
        biased;
        _ = interrupt.heard() => {
            watch.stop();
            None
        }
        entries = walking => Some(entries.map_err(io::Error::other)?),
    };
    spinner.finish_and_clear();
    let Some(entries) = entries else {
        output::note("interrupted; nothing was added");
        return Ok(Exit::Interrupted);
    };

    let store = session.store_or_make(&config).await?;
    let limits = Limits {
        file: args.max_file_size,
        total: args.max_total,
        files: args.max_files.into(),
        binary: args.binary,
    };
    let sizes = entries.iter().filter_map(|entry| match entry.what {
        What::File(size) if size <= limits.file => Some(size),
        _ => None,
    });
    let bar = output::progress(Some(sizes.sum()), "adding");
    let mut intake = Intake::new(&store, &root, limits, &watch, &bar);
    for entry in &entries {
        if let Err(failure) = intake.take(entry, &mut interrupt).await {
            bar.finish_and_clear();
            if !watch.is_stopped() {
                return Err(failure);
            }
            let files = output::counted(intake.added, "file");
            output::note(&format!("interrupted; {files} added, and no message refers to them"));
            output::note("the same command goes on, `sottovoce cleanup --artifacts` deletes them");
            return Ok(Exit::Interrupted);
        }
    }
    bar.finish_and_clear();
    let Intake { tree, ids, added, same, left_out, .. } = intake;
    let profile = store.profile().await?;
    if ids.iter().any(|id| profile.find_artifact(id).is_err()) {
        return Err(Failure::input(
            "something that was added has been deleted meanwhile",
            "run the same command again; it adds only what is missing",
        ));
    }

    let content = Cursor::new(Wiped(tree.text(&name)));
    let new = NewArtifact::new(ArtifactKind::Folder, name.as_str());
    let folder = store.add_artifact(new, Box::new(content)).await?;
    let message = match args.no_message {
        true => None,
        false => {
            let text =
                format!("Added {}: {}", description(&folder.artifact), folder.artifact.reference());
            refer(session, &store, &folder, text, None).await?
        }
    };
    if session.json {
        let AddedArtifact { artifact, was_there, .. } = &folder;
        let folder = Row { artifact, was_there: *was_there, message };
        output::json(&Done { added, same, left_out: &left_out, folder })?;
        return Ok(Exit::Done);
    }
    for left in left_out.iter().take(NAMED) {
        output::note(&format!("left out {}: {}", left.path, left.reason));
    }
    if let Some(more) = left_out.len().checked_sub(NAMED).filter(|more| *more > 0) {
        output::note(&format!("and {more} more, which the tree names"));
    }
    output::note(&format!(
        "{} added, {same} there already, {} left out",
        output::counted(added, "file"),
        left_out.len()
    ));
    report(session, &folder, message)?;
    Ok(Exit::Done)
}

/// The canonical path of the folder.
fn folder(dir: &Path) -> Result<PathBuf, Failure> {
    let wrong = |error: &io::Error| {
        Failure::input(format!("{}: {error}", dir.display()), "name a folder that can be read")
    };
    let root = dir.canonicalize().map_err(|error| wrong(&error))?;
    std::fs::read_dir(&root).map_err(|error| wrong(&error))?;
    Ok(root)
}

/// The folder's name: as given, or its own name if it was given as dots.
fn name(dir: &Path, root: &Path) -> String {
    let plain: PathBuf = dir.components().filter(|part| *part != Component::CurDir).collect();
    let named = match dir.file_name() {
        Some(_) => plain.as_os_str(),
        None => root.file_name().unwrap_or(root.as_os_str()),
    };
    output::one_line(&named.to_string_lossy())
}

/// Paths that are never added: the store, its key, and the configuration, which may hold a key.
fn never(config: &Config) -> Result<Vec<PathBuf>, Failure> {
    let files = [config.file.clone(), config.local_file.clone()];
    let places = [Some(config.storage_root()?), Some(config.key_file()?)].into_iter().chain(files);
    Ok(places.flatten().filter_map(|place| place.canonicalize().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_called_as_it_was_named_unless_that_says_nothing() {
        for (dir, called) in
            [("src/", "src"), ("./a/./b/.", "a/b"), ("../x", "../x"), (".", "real"), ("..", "real")]
        {
            assert_eq!(name(Path::new(dir), Path::new("/where/real")), called, "{dir}");
        }
        assert_eq!(name(Path::new("/"), Path::new("/")), "/");
    }
}
