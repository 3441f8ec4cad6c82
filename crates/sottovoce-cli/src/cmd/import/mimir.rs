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
  sottovoce --scope named/conv-abc123 tail         afterwards: one of the conversations

Exit codes:
  0  all is taken                  3  something was refused; the rest is taken
  1  failed; see the message     130  interrupted; the same command goes on from there";

/// Takes over the conversations that Mimir keeps in a project
///
/// Each becomes the conversation named/ID, its messages in the order of Mimir's lines with their times, tool calls and
/// notes. Titles, tags, notes and costs become settings where these say nothing yet. Artifacts are added with Mimir's id
/// as `mimirId`; what messages say of them stays word for word. Saved states become snapshots. The folder stays as it
/// is.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The project's folder, or its `.mimir/context`
    dir: PathBuf,

    /// Only tells what would be taken
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let source = MimirFolder::new(args.dir);
    let wishes = Wishes { dry_run: args.dry_run, skip_expired: false, limits: Limits::default() };
    conversations::merge_newer(session, wishes, source).await
}
