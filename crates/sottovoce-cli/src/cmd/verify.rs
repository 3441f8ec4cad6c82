//! `sottovoce verify`

use serde::Serialize;

use crate::exit::{Exit, Outcome};
use crate::output::{self, BAD, BOLD, GOOD, WARN};
use crate::session::Session;

/// Reads every file and names all that is not as it should be
///
/// Nothing is changed. Exits with 3 when something was lost, changed or cannot be read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Afterwards writes a new head from the records that are there, where the head was lost
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
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let store = session.store(&config).await?;
    let bar = output::progress(Some(0), "verifying");
    let shown = bar.clone();
    let report = store
        .verify(move |progress| {
            shown.set_length(progress.total as u64);
            shown.set_position(progress.done as u64);
        })
        .await;
    bar.finish_and_clear();
    let report = report?;
    if args.rebuild_head {
        store.rebuild_head().await?;
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
            "{BOLD}{} messages{BOLD:#}{when}, {} numbers forgotten, the highest {}: {verdict}",
            report.messages, report.forgotten, report.last_seq
        ))?;
    }
    Ok(if sound { Exit::Done } else { Exit::Found })
}
