//! `sottovoce import openai`

use std::path::PathBuf;

use sottovoce_import::OpenAiExport;

use super::conversations::{self, Wishes};
use super::limits::Limits;
use crate::exit::Outcome;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce import openai ~/Downloads/chatgpt --dry-run     what is in the export?
  sottovoce import openai ~/Downloads/chatgpt               all of it, unpacked
  sottovoce import openai training.jsonl                    chat completions: named/training and so on";

/// Imports ChatGPT's data export, or files of OpenAI chat completions
///
/// Each conversation of an export becomes named/ID, with its title. If an answer was regenerated or a question
/// edited, the branch that ChatGPT shows is imported. Other branches, hidden messages and parts that are not text are
/// counted as passed over; speech comes as its transcript.
///
/// A file with {"messages":[…]}, or with one such object per line, becomes named/FILE, and further objects
/// named/FILE-2 and so on. These messages have no times: the first gets the time of the file's last change, and each
/// further one a millisecond more. Repeating the import after the file was touched does not import it twice.
///
/// Files are read into memory as plain text, up to 1 GiB each.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The export's folder or `conversations.json`, or a file of chat completions
    path: PathBuf,

    /// Shows what would be imported, and stores nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let source = OpenAiExport::new(args.path);
    let wishes = Wishes { dry_run: args.dry_run, skip_expired: false, limits: Limits::default() };
    conversations::import_all(session, wishes, source).await
}
