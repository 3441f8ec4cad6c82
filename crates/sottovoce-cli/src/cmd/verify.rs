//! `sottovoce verify`

use serde::Serialize;
use sottovoce::{FileConversationStore, Finding, FindingKind, Report};

use crate::exit::{Exit, Outcome};
use crate::output::{self, BAD, BOLD, GOOD, WARN};
use crate::session::Session;

const AFTER_HELP: &str = "\
Exit codes:
  0  sound                         3  something was lost, changed or cannot be read
  1  failed; see the message       4  no key, or the wrong one";

/// Reads every file and names all that is not as it should be
///
/// Changes nothing without --rebuild-head.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Where the head was lost, writes a new one from the records that are there, and checks again
    ///
    /// What the lost head told of is gone then: newest records that were taken away are no longer missed.
    #[arg(long)]
    rebuild_head: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    sound: bool,
    messages: usize,
    last: u64,
    forgotten: u64,
    findings: usize,
    rebuilt_head: bool,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let store = session.store(&config).await?;
    let mut report = check(&store).await?;
    let mut rebuilt_head = false;
    if args.rebuild_head {
        if let Some(lost) = report.findings.iter().find(|finding| is_lost_head(finding)) {
            output::warning(&lost.to_string());
            store.rebuild_head().await?;
            output::note("rebuilt the head from the records that are there; checking again");
            rebuilt_head = true;
            report = check(&store).await?;
        } else {
            output::note("the head is there, so it stays as it is");
        }
    }
    let sound = report.is_sound();
    if session.json {
        report.findings.iter().try_for_each(output::json)?;
        output::json(&Summary {
            sound,
            messages: report.messages,
            last: report.last_seq,
            forgotten: report.forgotten,
            findings: report.findings.len(),
            rebuilt_head,
        })?;
    } else {
        for finding in &report.findings {
            let style = if finding.kind.is_problem() { BAD } else { WARN };
            output::line(format!("{style}{}{style:#}  {finding}", finding.kind.code()))?;
        }
        let verdict = match (sound, report.findings.len()) {
            (true, 0) => format!("{GOOD}sound{GOOD:#}"),
            (true, _) => format!("{GOOD}sound{GOOD:#}, with notes"),
            (false, _) => format!("{BAD}not sound{BAD:#}"),
        };
        let when = report.times.map_or_else(String::new, |(first, last)| {
            format!(", from {} to {}", first.strftime("%Y-%m-%d"), last.strftime("%Y-%m-%d"))
        });
        output::line(format!(
            "{BOLD}{}{BOLD:#}{when}, {} numbers forgotten, the highest {}: {verdict}",
            output::messages(report.messages),
            report.forgotten,
            report.last_seq
        ))?;
    }
    Ok(if sound { Exit::Done } else { Exit::Found })
}

async fn check(store: &FileConversationStore) -> sottovoce::Result<Report> {
    let bar = output::progress(Some(0), "verifying");
    let shown = bar.clone();
    let report = store
        .verify(move |progress| {
            shown.set_length(progress.total as u64);
            shown.set_position(progress.done as u64);
        })
        .await;
    bar.finish_and_clear();
    report
}

fn is_lost_head(finding: &Finding) -> bool {
    matches!(finding.kind, FindingKind::HeadMissing | FindingKind::HeadDamaged)
}
