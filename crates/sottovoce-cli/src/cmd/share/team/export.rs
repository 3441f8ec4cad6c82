//! `sottovoce team export`

use std::io::{self, Write};
use std::path::PathBuf;

use sottovoce_sync::SyncError;

use crate::cmd::share::team::{Which, teams};
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::private_file::{self, PrivateFile};
use crate::session::Session;

/// Writes everything that you may read at the server to a file, opened, as lines of JSON
///
/// Each line is a record with its conversation, its number, when the server took it and who wrote it. Whoever has the file can read
/// it all. Artifacts are named, not contained. `sottovoce export` writes a conversation as it is in this store.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The new file
    file: PathBuf,

    #[command(flatten)]
    which: Which,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    private_file::check(&args.file, false, &config)?;
    let teams = teams(session)?;
    let new = PrivateFile::begin(&args.file, false, &config)?;
    let bar = output::progress(None, "exporting");
    let mut lines = io::BufWriter::new(&new.file);
    let mut failed = None;
    let mut count = 0;
    let exported = teams.export(args.which.team.as_deref(), |record| {
        let line = serde_json::to_string(&record).map_err(io::Error::from);
        if let Err(error) = line.and_then(|line| writeln!(lines, "{line}")) {
            failed = Some(error);
            return Err(SyncError::State { reason: "the file cannot be written" }.into());
        }
        count += 1;
        bar.set_message(format!("exporting: {}", output::counted(count, "record")));
        Ok(())
    });
    let exported = exported.await;
    let flushed = lines.flush();
    drop(lines);
    bar.finish_and_clear();
    if let Some(error) = failed.or(flushed.err()) {
        return Err(new.unwritable(&error));
    }
    exported.map_err(Failure::from)?;
    new.end()?;
    output::note(&format!("exported {}", output::counted(count, "record")));
    Ok(Exit::Done)
}
