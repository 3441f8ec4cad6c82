//! `sottovoce import`

use clap::Subcommand;
use serde::Serialize;
use sottovoce::admin::Progress;
use sottovoce::import::{ImportReport, ImportedMessages, PassedOver, Refusal};

use crate::exit::{Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{self, BOLD, WARN};
use crate::session::Session;

mod backup;
#[cfg(feature = "sqlite")]
mod chorus;
mod conversations;
mod discord;
mod elara;
mod jsonl;
pub(crate) mod keys;
mod limits;
#[cfg(feature = "sqlite")]
mod llm_generator;
mod mimir;
mod openai;

/// The most refused files that people are shown; `--json` lists them all.
const LISTED: usize = 20;

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
    #[cfg(feature = "sqlite")]
    Chorus(chorus::Args),
    Discord(discord::Args),
    Elara(elara::Args),
    Jsonl(jsonl::Args),
    #[cfg(feature = "sqlite")]
    McpLlmGenerator(llm_generator::Args),
    Mimir(mimir::Args),
    Openai(openai::Args),
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    match args.system {
        System::Backup(args) => backup::run(session, args).await,
        #[cfg(feature = "sqlite")]
        System::Chorus(args) => chorus::run(session, args).await,
        System::Discord(args) => discord::run(session, args).await,
        System::Elara(args) => elara::run(session, args).await,
        System::Jsonl(args) => jsonl::run(session, args).await,
        #[cfg(feature = "sqlite")]
        System::McpLlmGenerator(args) => llm_generator::run(session, args).await,
        System::Mimir(args) => mimir::run(session, args).await,
        System::Openai(args) => openai::run(session, args).await,
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
    let report = if dry_run {
        let store = session.store_or_empty(&config).await?;
        imported.preview(&store).await?
    } else {
        let store = session.store_or_make(&config).await?;
        let bar = output::progress(Some(0), "keeping");
        let shown = |progress| advance(&bar, progress);
        let mut interrupt = Interrupt::listen()?.and_hangup_if_heeded()?;
        let report = tokio::select! {
            report = imported.import_into(&store, shown) => Some(report),
            _ = interrupt.heard() => None,
        };
        bar.finish_and_clear();
        let Some(report) = report else {
            output::note("interrupted; what was imported is kept; repeat the command to continue");
            return Ok(Exit::Interrupted);
        };
        report?
    };
    tell(session, system, &report, dry_run)
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
