//! `sottovoce import mcp-llm-generator`

use std::path::PathBuf;

use sottovoce_import::LlmGeneratorDatabase;

use super::conversations::{self, Wishes};
use super::limits::Limits;
use crate::exit::Outcome;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce import mcp-llm-generator ~/generator --dry-run        what is in it?
  sottovoce import mcp-llm-generator backup/context-memory.db     a database by itself
  sottovoce --scope named/context-mep92q9v-mkorf9 tail            afterwards: one of the contexts";

/// Imports the database of mcp-llm-generator
///
/// Each context becomes the conversation named/ID, with its name, its persona, and its messages in the order of their
/// rows. Presets become presets here, unless one of the same id was made or changed here. A number outside the limits
/// here is replaced by the nearest one within them, and kept as metadata. Expiry starts anew with the last interaction.
/// The database is read from a private copy in memory.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The database, `context-memory.db` or `data/contexts.db`, or the folder that holds it
    path: PathBuf,

    /// Shows what would be imported, and stores nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let source = LlmGeneratorDatabase::new(args.path, session.clock().now().timestamp());
    let wishes = Wishes { dry_run: args.dry_run, skip_expired: false, limits: Limits::default() };
    conversations::import_all(session, wishes, source).await
}
