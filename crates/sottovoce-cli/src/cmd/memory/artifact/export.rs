//! `sottovoce artifact export`

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use sottovoce::store::{Artifact, ArtifactContents};
use zeroize::Zeroizing;

use crate::cmd::memory::artifact::source::{Guarded, Watch};
use crate::cmd::memory::artifact::{description, open, unreadable};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output;
use crate::private_file::{self, PrivateFile};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce artifact export 5b1c90f2 report.pdf
  sottovoce artifact export 5b1c90f2 - --yes | tar -t";

/// The bytes of one read.
const PIECE: usize = 1 << 16;

/// Writes an artifact as plain text to a new file that only its owner can read
///
/// Only the file's mode protects the copy, so the command asks for confirmation. It never overwrites a file.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Its id or abbreviation
    id: String,

    /// The new file; `-` writes to standard output
    file: PathBuf,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Exported<'a> {
    id: &'a str,
    file: &'a Path,
    size: u64,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let contents = open(session, &config, &args.id).await?;
    let artifact = contents.artifact().clone();
    let is_output = args.file == Path::new("-");
    if !is_output {
        private_file::check(&args.file, false, &config)?;
    }
    if !args.yes && !confirmed(session, &artifact)? {
        output::note("nothing was written");
        return Ok(Exit::Done);
    }
    // Listen only now: Ctrl-C at the question must end the program.
    let mut interrupt = Interrupt::listen()?;
    let file = match is_output {
        true => None,
        false => Some(PrivateFile::begin(&args.file, false, &config)?),
    };
    let watch = Arc::new(Watch::default());
    let bar = output::progress(Some(artifact.size), "exporting");
    let (source, id) = (Guarded::new(contents, u64::MAX, &bar, &watch), artifact.id.clone());
    let writing = tokio::task::spawn_blocking(move || write(source, file, &artifact));
    tokio::pin!(writing);
    let written = tokio::select! {
        biased;
        _ = interrupt.heard() => {
            watch.stop();
            writing.await
        }
        written = &mut writing => written,
    };
    bar.finish_and_clear();
    let size = match written.map_err(io::Error::other)? {
        Err(_) if watch.is_stopped() => {
            output::note("interrupted; no file was left");
            return Ok(Exit::Interrupted);
        }
        size => size?,
    };
    if !is_output && session.json {
        output::json(&Exported { id: &id, file: &args.file, size })?;
    } else if !is_output {
        output::note(&format!(
            "wrote {} in the clear to {}",
            output::counted(size, "byte"),
            args.file.display()
        ));
    }
    Ok(Exit::Done)
}

fn confirmed(session: &Session, artifact: &Artifact) -> Result<bool, Failure> {
    session.check_attended("write an artifact in the clear, where the key does not protect it")?;
    output::note(&description(artifact));
    let question = "Write it in the clear? Whoever gets the copy can read it without the key.";
    Ok(output::confirmed(question)?)
}

/// Writes the artifact to the file or standard output. Returns its size in bytes.
fn write(
    mut source: Guarded<ArtifactContents>,
    mut file: Option<PrivateFile>,
    artifact: &Artifact,
) -> Result<u64, Failure> {
    let mut piece = Zeroizing::new(vec![0; PIECE]);
    let mut written = 0;
    loop {
        let read = source.read(&mut piece).map_err(|error| unreadable(artifact, error))?;
        let bytes = piece.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        match &mut file {
            Some(to) => to.file.write_all(bytes).map_err(|error| to.unwritable(&error))?,
            None => output::bytes(bytes)?,
        }
        written += read as u64;
    }
    match file {
        Some(file) => file.end()?,
        None => io::stdout().flush()?,
    }
    Ok(written)
}
