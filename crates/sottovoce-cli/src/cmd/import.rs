//! `sottovoce import`

use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use serde::Serialize;
use sottovoce::admin::Progress;
use sottovoce::import::{ImportReport, ImportedMessages, PassedOver, Refusal};
#[cfg(feature = "sqlite")]
use sottovoce_import::{ChorusDatabase, LlmGeneratorDatabase};
use sottovoce_import::{MimirFolder, OpenAiExport};

use crate::cmd::memory::understand;
use crate::exit::{Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{self, BOLD, WARN};
use crate::session::Session;

mod backup;
mod conversations;
mod discord;
mod elara;
mod jsonl;
pub(crate) mod keys;
mod limits;

use conversations::{Wishes, import_all};
use limits::Limits;

/// What is kept of an import that was interrupted.
const IMPORTED: &str = "what was imported is kept; repeat the command to continue";
/// The most refused files that people are shown; `--json` lists them all.
const LISTED: usize = 20;

#[cfg(feature = "sqlite")]
const CHORUS: &str = "\
Examples:
  sottovoce import chorus ~/.chorus-agents --dry-run    what is in it?
  sottovoce import chorus backup/chorus.db              a database by itself, without saved sessions
  sottovoce --scope named/mira tail                     afterwards: one of the conversations";
#[cfg(feature = "sqlite")]
const LLM_GENERATOR: &str = "\
Examples:
  sottovoce import mcp-llm-generator ~/generator --dry-run        what is in it?
  sottovoce import mcp-llm-generator backup/context-memory.db     a database by itself
  sottovoce --scope named/context-mep92q9v-mkorf9 tail            afterwards: one of the contexts";
const MIMIR: &str = "\
Examples:
  sottovoce import mimir ~/project --dry-run       what is in ~/project/.mimir/context?
  sottovoce import mimir ~/project
  sottovoce --scope named/conv-abc123 tail         afterwards: one of the conversations";
const OPENAI: &str = "\
Examples:
  sottovoce import openai ~/Downloads/chatgpt --dry-run     what is in the export?
  sottovoce import openai ~/Downloads/chatgpt               all of it, unpacked
  sottovoce import openai training.jsonl                    chat completions: named/training and so on";

/// Imports conversations from other programs
///
/// Opens the other program's files read-only. A message that was imported before, or was forgotten since, is not
/// imported again, so an import can be interrupted and repeated. Each message keeps its time and is sorted by it, but
/// never before a message that precedes it in the other program.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    system: System,
}

#[derive(Subcommand)]
enum System {
    Backup(backup::Args),
    /// Imports the database of chorus
    ///
    /// Each agent's messages become the conversation named/AGENT, with its threads. Saved sessions become snapshots,
    /// documents become artifacts, and the system prompt becomes the persona, which does not expire. Messages that were
    /// cleared in chorus stay out of prompts. The database is read from a private copy in memory.
    ///
    /// PATH: the folder with `db/chorus.db` and `agents`, or the database itself.
    #[cfg(feature = "sqlite")]
    #[command(after_help = CHORUS)]
    Chorus(Source),
    Discord(discord::Args),
    Elara(elara::Args),
    Jsonl(jsonl::Args),
    /// Imports the database of mcp-llm-generator
    ///
    /// Each context becomes the conversation named/ID, with its name, its persona, and its messages in the order of their
    /// rows. Presets become presets here, unless one of the same id was made or changed here. A number outside the limits
    /// here is replaced by the nearest one within them, and kept as metadata. Expiry starts anew with the last interaction.
    /// The database is read from a private copy in memory.
    ///
    /// PATH: the database, `context-memory.db` or `data/contexts.db`, or the folder that holds it.
    #[cfg(feature = "sqlite")]
    #[command(after_help = LLM_GENERATOR)]
    McpLlmGenerator(Source),
    /// Imports the conversations that Mimir keeps in a project
    ///
    /// Each conversation becomes named/ID. Its messages keep the order of Mimir's lines, their times, tool calls and notes.
    /// Title, tags, notes and costs become settings, unless the conversation has its own already. Artifacts keep Mimir's id
    /// as `mimirId`, so that references in messages still work. Saved states become snapshots.
    ///
    /// PATH: the project's folder, or its `.mimir/context`.
    #[command(after_help = MIMIR)]
    Mimir(Source),
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
    ///
    /// PATH: the export's folder or `conversations.json`, or a file of chat completions.
    #[command(after_help = OPENAI)]
    Openai(Source),
}

/// A source whose conversations are imported as they are.
#[derive(clap::Args)]
struct Source {
    /// The folder or file; see above
    path: PathBuf,

    /// Shows what would be imported, and stores nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let wishes = |dry_run| Wishes { dry_run, skip_expired: false, limits: Limits::default() };
    match args.system {
        System::Backup(args) => backup::run(session, args).await,
        #[cfg(feature = "sqlite")]
        System::Chorus(Source { path, dry_run }) => {
            import_all(session, wishes(dry_run), ChorusDatabase::new(path)).await
        }
        System::Discord(args) => discord::run(session, args).await,
        System::Elara(args) => elara::run(session, args).await,
        System::Jsonl(args) => jsonl::run(session, args).await,
        #[cfg(feature = "sqlite")]
        System::McpLlmGenerator(Source { path, dry_run }) => {
            let now = session.clock().now().timestamp();
            import_all(session, wishes(dry_run), LlmGeneratorDatabase::new(path, now)).await
        }
        System::Mimir(Source { path, dry_run }) => {
            import_all(session, wishes(dry_run), MimirFolder::new(path)).await
        }
        System::Openai(Source { path, dry_run }) => {
            import_all(session, wishes(dry_run), OpenAiExport::new(path)).await
        }
    }
}

#[derive(Serialize)]
struct RefusedRow<'a> {
    refused: &'a str,
    reason: &'static str,
    why: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    system: &'static str,
    dry_run: bool,
    taken: usize,
    already_there: usize,
    forgotten: usize,
    refused: usize,
    passed_over: usize,
    passed_over_kinds: &'a PassedOver,
    forms: &'a std::collections::BTreeMap<&'static str, usize>,
}

/// Imports messages into the configured store, and shows the result.
async fn keep(session: &Session, imported: ImportedMessages, dry_run: bool) -> Outcome {
    let config = session.config()?;
    let system = imported.system;
    if dry_run {
        let store = session.store_or_empty(&config).await?;
        let report = imported.preview(&store).await?;
        return tell(session, system, &report, dry_run);
    }
    let store = session.store_or_make(&config).await?;
    let bar = output::progress(Some(0), "keeping");
    let shown = |progress| advance(&bar, progress);
    let mut interrupt = Interrupt::listen()?.and_hangup_if_heeded()?;
    let report = interrupt.or(IMPORTED, imported.import_into(&store, shown)).await??;
    bar.finish_and_clear();
    let exit = tell(session, system, &report, dry_run)?;
    understand::after_import(Arc::new(store)).await;
    Ok(exit)
}

pub(crate) fn advance(bar: &indicatif::ProgressBar, progress: Progress) {
    bar.set_length(progress.total as u64);
    bar.set_position(progress.done as u64);
}

fn tell(session: &Session, system: &'static str, report: &ImportReport, dry_run: bool) -> Outcome {
    let refused = &report.refused;
    if session.json {
        refused.iter().try_for_each(|refusal| output::json(&row(refusal)))?;
        output::json(&Summary {
            system,
            dry_run,
            taken: report.taken,
            already_there: report.already_there,
            forgotten: report.forgotten,
            refused: refused.len(),
            passed_over: report.passed_over.total(),
            passed_over_kinds: &report.passed_over,
            forms: &report.forms,
        })?;
    } else {
        list(refused)?;
        output::line(in_words(report, dry_run))?;
    }
    Ok(if refused.is_empty() { Exit::Done } else { Exit::Problems })
}

/// Shows people the first refused files.
fn list(refused: &[Refusal]) -> std::io::Result<()> {
    for refusal in refused.iter().take(LISTED) {
        output::line(format!("{WARN}refused{WARN:#}  {refusal}"))?;
    }
    match refused.len().saturating_sub(LISTED) {
        0 => Ok(()),
        more => {
            output::line(format!("{WARN}refused{WARN:#}  and {more} more; --json lists them all"))
        }
    }
}

/// The kinds of entries that were passed over, and their numbers.
fn passed_over(others: &PassedOver) -> String {
    let kinds: Vec<_> = others.kinds().map(|(kind, number)| format!("{kind} ({number})")).collect();
    match kinds.is_empty() {
        true => String::new(),
        false => format!("; passed over: {}", kinds.join(", ")),
    }
}

fn row(refusal: &Refusal) -> RefusedRow<'_> {
    let (reason, why) = (refusal.reason.code(), refusal.reason.to_string());
    RefusedRow { refused: &refusal.file, reason, why }
}

fn in_words(report: &ImportReport, dry_run: bool) -> String {
    let verb = if dry_run { "would import" } else { "imported" };
    let mut words = format!("{BOLD}{verb} {}{BOLD:#}", output::messages(report.taken));
    for (number, what) in [
        (report.already_there, "already there"),
        (report.forgotten, "forgotten here"),
        (report.refused.len(), "refused"),
    ] {
        if number > 0 {
            words.push_str(&format!(", {number} {what}"));
        }
    }
    words.push_str(&passed_over(&report.passed_over));
    let forms: Vec<_> =
        report.forms.iter().map(|(form, number)| format!("{number} {form}")).collect();
    if !forms.is_empty() {
        words.push_str(&format!("; forms: {}", forms.join(", ")));
    }
    words
}
