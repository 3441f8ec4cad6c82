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
  sottovoce import openai training.jsonl                    chat completions: named/training and so on

Exit codes:
  0  all is taken                  3  something was refused; the rest is taken
  1  failed; see the message     130  interrupted; the same command goes on from there";

/// Takes over what ChatGPT exports, or files of OpenAI's chat completions
///
/// Each conversation of an export becomes named/ID, with its title. Of an answer that was made anew, or a question that
/// was edited, the one that ChatGPT shows is taken; others, what is hidden and what is no text are counted as passed
/// over, but what was spoken comes as its transcript. A file with {"messages":[…]}, or one such object a line, becomes
/// named/FILE, and further objects named/FILE-2 and so on. These have no times: the first message gets the time at which
/// the file was last changed, and each further one a millisecond more. A file that was touched is not taken twice. Files of
/// up to 1 GiB are read, as plain text in memory. They stay as they are.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The export's folder or `conversations.json`, or a file of chat completions
    path: PathBuf,

    /// Only tells what would be taken
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let source = OpenAiExport::new(args.path);
    let wishes = Wishes { dry_run: args.dry_run, skip_expired: false, limits: Limits::default() };
    conversations::merge_newer(session, wishes, source).await
}
