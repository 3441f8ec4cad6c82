//! `sottovoce import chorus`

use std::path::PathBuf;

use sottovoce_import::ChorusDatabase;

use super::conversations::{self, Wishes};
use super::limits::Limits;
use crate::exit::Outcome;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce import chorus ~/.chorus-agents --dry-run    what is in it?
  sottovoce import chorus backup/chorus.db              a database by itself, without saved sessions
  sottovoce --scope named/mira tail                     afterwards: one of the conversations";

/// Imports the database of chorus
///
/// Each agent's messages become the conversation named/AGENT, with its threads. Saved sessions become snapshots,
/// documents become artifacts, and the system prompt becomes the persona, which does not expire. Messages that were
/// cleared in chorus stay out of prompts. The database is read from a private copy in memory.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The folder with `db/chorus.db` and `agents`, or the database itself
    path: PathBuf,

    /// Shows what would be imported, and stores nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let source = ChorusDatabase::new(args.path);
    let wishes = Wishes { dry_run: args.dry_run, skip_expired: false, limits: Limits::default() };
    conversations::import_all(session, wishes, source).await
}
