//! `sottovoce rekey`

mod target;

use std::fs::{File, TryLockError};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sottovoce::admin::{Rekey, RekeyReport, store_exists};
use target::Target;

use crate::advice::FindingRow;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{self, WARN, object};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce rekey                           to a new key file
  sottovoce rekey --to-key-file ~/new.key   to the key in this file
  sottovoce rekey --to-passphrase           to a passphrase, which is asked for

Without options a new key file is made and takes the old one's place; the old one stays beside it, named after \
its id and `.old`, since older backups of the store need it. The store can be used meanwhile: programs that are \
started during the change find both keys beside each other. Those that run already know the old key alone and can \
no longer write: start them anew.

To --to-key-file and --to-passphrase, stop other programs first: with their old configuration they can no longer \
write until they are given the new key.

Broken off at any moment, by whatever, nothing is lost: the same command goes on from there. Inventories of \
`verify --save` are to be taken anew afterwards, since only numbers are compared across keys.";

/// Changes the key: seals everything again, and then refuses the old key
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Changes to the key in this file, which is created if it does not exist
    #[arg(long, value_name = "FILE", conflicts_with = "to_passphrase")]
    to_key_file: Option<PathBuf>,

    /// Changes to a passphrase, which the command asks for
    #[arg(long)]
    to_passphrase: bool,

    /// Reads the new passphrase from this file descriptor instead of asking
    #[arg(long, value_name = "FD", requires = "to_passphrase")]
    new_passphrase_fd: Option<u32>,

    /// Retires the old key even if some files open under no available key
    #[arg(long)]
    leave_unreadable: bool,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let root = config.storage_root()?;
    if !store_exists(&root)? {
        return Err(Failure::Nothing { folder: root });
    }
    let leave = args.leave_unreadable;
    let _alone = alone(&root)?;
    let target = Target::prepare(session, config, args)?;
    let mut from = target.from.iter().cloned();
    let Some(first) = from.next() else {
        return Err(sottovoce::Error::NoKey.into());
    };
    let rekey = Rekey::new(first, Arc::clone(&target.to));
    let rekey = from.fold(rekey, Rekey::also_from);
    let rekey = rekey.copy_salt_to(config.salt_folder()?).leave_unreadable(leave);
    let (rekeyed, stopped) = watched(rekey, root).await?;
    let done = !stopped && rekeyed.kept.is_empty();
    if done {
        target.settle(config)?;
    }
    if session.json {
        FindingRow::all(&rekeyed.left).iter().try_for_each(output::json)?;
        output::json(&object!(
            "done": done, "id": rekeyed.id, "files": rekeyed.files, "records": rekeyed.records,
            "retired": rekeyed.retired, "kept": rekeyed.kept, "left": rekeyed.left.len(),
            "keyFile": target.file,
        ))?;
    } else {
        tell(&rekeyed, done)?;
        if done {
            target.tell(config);
        }
    }
    Ok(match (done, stopped) {
        (true, _) => Exit::Done,
        (false, true) => {
            output::note("stopped half-way; nothing is lost; run the same command to continue");
            Exit::Interrupted
        }
        (false, false) => {
            output::warning(
                "the old key stays valid, because the files named above may open with it",
            );
            output::note(
                "`sottovoce verify` shows more; --leave-unreadable retires the old key anyway",
            );
            Exit::Problems
        }
    })
}

/// A lock held during the change. Two changes at once could each set aside the new key that the other has just
/// created.
fn alone(root: &Path) -> Result<File, Failure> {
    let folder = File::open(root)?;
    match folder.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Failure::input(
            format!("{}: another change of keys is going on", root.display()),
            "wait until it ends, then try again",
        )),
        // Not every file system can lock folders. There, the key list keeps two changes apart.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(folder),
    }
}

/// Runs the change with a progress bar. Returns whether Ctrl-C stopped it.
async fn watched(rekey: Rekey, root: PathBuf) -> Result<(RekeyReport, bool), Failure> {
    let bar = output::progress(Some(0), "sealing anew");
    let stop = Arc::new(AtomicBool::new(false));
    let (shown, stopped) = (output::moving(&bar), Arc::clone(&stop));
    let running = rekey.run(root, move |progress| {
        shown(progress);
        match stopped.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    // It ends after the current files.
    let end = || stop.store(true, Ordering::Relaxed);
    let rekeyed = Interrupt::listen()?.or_stop(end, running).await;
    bar.finish_and_clear();
    let rekeyed = rekeyed?;
    // A change that was complete anyway was not stopped.
    let stopped = stop.load(Ordering::Relaxed) && !rekeyed.kept.is_empty();
    Ok((rekeyed, stopped))
}

fn tell(rekeyed: &RekeyReport, done: bool) -> std::io::Result<()> {
    for finding in &rekeyed.left {
        output::line(format!("{WARN}{}{WARN:#}  {finding}", finding.kind.code()))?;
    }
    let files = output::counted(rekeyed.files as u64, "file");
    let were = if rekeyed.files == 1 { "was" } else { "were" };
    output::note(&format!("{files} {were} sealed under key {}", rekeyed.id));
    if done {
        for id in &rekeyed.retired {
            output::note(&format!("key {id} is refused from now on"));
        }
        output::note(
            "save new inventories (`verify --save`): with another key, only numbers are compared",
        );
    }
    Ok(())
}
