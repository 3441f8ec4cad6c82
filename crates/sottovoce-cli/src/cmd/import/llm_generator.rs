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
  sottovoce --scope named/context-mep92q9v-mkorf9 tail            afterwards: one of the contexts

Exit codes:
  0  all is taken                  3  something was refused; the rest is taken
  1  failed; see the message     130  interrupted; the same command goes on from there";

/// Takes over the database of mcp-llm-generator
///
/// Each context becomes the conversation named/ID, with its name and its personality, and its messages in the order in
/// which they were stored. Personality presets become presets here, unless one of the same id was made or changed here.
/// What is out of the limits here is brought to the nearest value that is not, and noted as it was. Expiry is counted
/// anew, from the last interaction. The database is read from a private copy in memory; the original stays as it is.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The database, `context-memory.db` or `data/contexts.db`, or the folder that holds it
    path: PathBuf,

    /// Only tells what would be taken
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let source = LlmGeneratorDatabase::new(args.path, session.clock().now().timestamp());
    let wishes = Wishes { dry_run: args.dry_run, skip_expired: false, limits: Limits::default() };
    conversations::merge_newer(session, wishes, source).await
}
