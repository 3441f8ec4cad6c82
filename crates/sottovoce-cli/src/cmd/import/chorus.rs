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
  sottovoce --scope named/mira tail                     afterwards: one of the conversations

Exit codes:
  0  all is taken                  3  something was refused; the rest is taken
  1  failed; see the message     130  interrupted; the same command goes on from there";

/// Takes over the database of chorus
///
/// Each agent's messages become the conversation named/AGENT, with its threads, and its saved sessions become snapshots.
/// Its system prompt becomes the conversation's personality, which does not expire, and its documents become artifacts.
/// What was cleared in chorus stays out of prompts. The database is read from a private copy in memory; the original, and
/// what lies beside it, stays as it is.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The folder with `db/chorus.db` and `agents`, or the database itself
    path: PathBuf,

    /// Only tells what would be taken
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let source = ChorusDatabase::new(args.path);
    let wishes = Wishes { dry_run: args.dry_run, skip_expired: false, limits: Limits::default() };
    conversations::merge_newer(session, wishes, source).await
}
