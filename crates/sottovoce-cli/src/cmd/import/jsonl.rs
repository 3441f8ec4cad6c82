//! `sottovoce import jsonl`

use std::io::IsTerminal;
use std::path::PathBuf;

use sottovoce_import::{JsonLines, Reader};

use crate::exit::Outcome;
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Fields of a line:
  role        user, assistant, system or tool, in any letter case; also human, ai, bot, model
  content     the words
  the time    as timestampUtc, timestamp, created_at, createdAt, time or date: like 2025-08-24T18:36:25+02:00, or
              the seconds or milliseconds since 1970 as a number
  id          what the source calls the message; kept as messageId
  metadata    texts by name; values of other kinds are kept as their JSON
  toolCalls, toolCallId, threadId, offsetMinutes    as `tail --json` prints them

Examples:
  sottovoce --scope named/kitchen import jsonl chat.jsonl --dry-run
  sottovoce --scope named/kitchen import jsonl chat.jsonl     again when it has grown: imports what is new
  sottovoce --json tail -n 100000 | sottovoce --config other.json import jsonl -";

/// Imports messages as JSON lines, one object each, from any program
///
/// The messages go into the conversation of --scope, and those without a threadId into the thread of --thread. They are
/// sorted by time, and within one moment by line. A line without a time is refused, unless --at-now is given. A
/// repeated import recognizes a message by its line without the metadata; without a time, by the file's name too. Each
/// of several equal lines without an id is a message. Other fields are ignored.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The file, or `-` for standard input
    file: PathBuf,

    /// Accepts lines without a time, with the current time in their order; repeating the import does not store them
    /// twice
    #[arg(long)]
    at_now: bool,

    /// Shows what would be imported, and stores nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let (mut lines, total) = if args.file.as_os_str() == "-" {
        if std::io::stdin().is_terminal() {
            output::note("reading JSON lines; end with Ctrl-D");
        }
        (JsonLines::from_reader(std::io::stdin()), None)
    } else {
        (JsonLines::new(args.file), Some(0))
    };
    lines = lines.in_thread(session.thread.clone());
    if args.at_now {
        lines = lines.said_at(session.clock().now().timestamp());
    }
    let bar = output::progress(total, "reading");
    let shown = bar.clone();
    let imported = lines
        .read(move |progress| {
            if total.is_some() {
                super::advance(&shown, progress);
            }
        })
        .await;
    bar.finish_and_clear();
    super::keep(session, imported?, args.dry_run).await
}
