//! `sottovoce import mimir`

use std::path::PathBuf;

use sottovoce_import::MimirFolder;

use super::conversations::{self, Wishes};
use super::limits::Limits;
use crate::exit::Outcome;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce import mimir ~/project --dry-run       what is in ~/project/.mimir/context?
  sottovoce import mimir ~/project
  sottovoce --scope named/conv-abc123 tail         afterwards: one of the conversations";

/// Imports the conversations that Mimir keeps in a project
///
/// Each conversation becomes named/ID. Its messages keep the order of Mimir's lines, their times, tool calls and notes.
/// Title, tags, notes and costs become settings, unless the conversation has its own already. Artifacts keep Mimir's id
/// as `mimirId`, so that references in messages still work. Saved states become snapshots.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The project's folder, or its `.mimir/context`
    dir: PathBuf,

    /// Shows what would be imported, and stores nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let source = MimirFolder::new(args.dir);
    let wishes = Wishes { dry_run: args.dry_run, skip_expired: false, limits: Limits::default() };
    conversations::import_all(session, wishes, source).await
}
