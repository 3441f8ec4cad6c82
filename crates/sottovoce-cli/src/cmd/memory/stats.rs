//! `sottovoce stats`

mod tally;

use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use sottovoce::Scope;
use sottovoce::admin::Stats;

use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::Session;
use tally::Tally;

const AFTER_HELP: &str = "\
Examples:
  sottovoce stats
  sottovoce --scope dm/42 stats";

/// Shows the size of a conversation, and when it expires
///
/// The blocks show the number of messages on each day, up to the day of the last one. Days are in the speaker's local
/// time if it is known.
#[derive(clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Was a picture; the page draws it now
    #[arg(long, hide = true, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

#[derive(Serialize)]
struct Row<'a> {
    scope: String,
    #[serde(flatten)]
    stats: &'a Stats,
}

/// The statistics, with what needs reading all messages.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Whole<'a> {
    #[serde(flatten)]
    row: Row<'a>,
    roles: tally::Roles,
    /// The number of messages on each of the last days, up to the last message's day.
    per_day: Vec<u64>,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    if args.plot.is_some() {
        let help = "open `sottovoce page`: under Numbers, it draws messages and tokens over time";
        return Err(Failure::input("stats draws no pictures", help));
    }
    let config = session.config()?;
    let mut interrupt = Interrupt::listen()?;
    let store = session.store_or_empty(&config).await?;
    let stats = store.stats().await?;
    let bar = output::progress(Some(stats.message_count), "counting");
    let tally = interrupt.or("", Tally::of(&store, &bar)).await??;
    bar.finish_and_clear();
    output::skipped(&tally.skipped);
    if session.json {
        let row = Row { scope: session.scope.to_string(), stats: &stats };
        output::json(&Whole { row, roles: tally.roles(), per_day: tally.last_days() })?;
    } else {
        show(&session.scope, &stats)?;
        if stats.artifacts > 0 {
            output::line(format!("{:<12} {}", "artifacts", stats.artifacts))?;
        }
        tally.show()?;
    }
    Ok(Exit::Done)
}

/// Prints JSON on standard output.
pub(crate) fn json(scope: &Scope, stats: &Stats) -> std::io::Result<()> {
    output::json(&Row { scope: scope.to_string(), stats })
}

/// Prints text on standard output.
pub(crate) fn show(scope: &Scope, stats: &Stats) -> std::io::Result<()> {
    let row = |name: &str, value: String| output::line(format!("{name:<12} {value}"));
    row("scope", scope.to_string())?;
    row("exists", if stats.exists { "yes" } else { "no" }.to_owned())?;
    let hidden = match stats.hidden {
        0 => String::new(),
        hidden => format!(", and {hidden} over the limits, to be removed by `sottovoce cleanup`"),
    };
    row("messages", format!("{}{hidden}", stats.message_count))?;
    row("size", bytes(stats.bytes))?;
    if let (Some(first), Some(last)) = (stats.first, stats.last) {
        row("from", moment(first))?;
        row("to", moment(last))?;
    }
    if let Some(cleared) = stats.cleared {
        row("cleared", moment(cleared))?;
    }
    row("snapshots", stats.snapshots.to_string())?;
    row("kept", kept(stats))?;
    row("expires", expiry(stats))
}

fn kept(stats: &Stats) -> String {
    let limit = |limit: u32| format!("at most {}", output::counted(limit.into(), "message"));
    let messages = stats.retention.max_messages.map(|most| limit(most.get()));
    let ttl = stats.retention.ttl_seconds.map(|ttl| format!("for {}", duration(ttl.get())));
    let both: Vec<String> = [messages, ttl].into_iter().flatten().collect();
    if both.is_empty() { "everything, for ever".to_owned() } else { both.join(", ") }
}

fn expiry(stats: &Stats) -> String {
    match (stats.expires_at, stats.expires_in) {
        (Some(at), Some(0)) => format!("expired {}", moment(at)),
        (Some(at), Some(ms)) => {
            let left = SignedDuration::from_millis(ms).as_secs();
            format!("{}, in {}", moment(at), duration(left.unsigned_abs()))
        }
        _ => "never".to_owned(),
    }
}

/// A time in UTC, to the second.
pub(crate) fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// "512 B", "1.5 KiB", "3.2 MiB".
pub(crate) fn bytes(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string()
}

/// Seconds in the largest units that fit exactly or nearly: "24 h", "90 min", "26 h 3 min".
pub(crate) fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds % 60, "s")];
    let shown: Vec<String> = parts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .take(2)
        .map(|(number, unit)| format!("{number} {unit}"))
        .collect();
    if shown.is_empty() { "0 s".to_owned() } else { shown.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn a_duration_reads_well() {
        for (seconds, shown) in
            [(0, "0 s"), (86_400, "1 d"), (5400, "1 h 30 min"), (90_061, "1 d 1 h"), (59, "59 s")]
        {
            assert_eq!(duration(seconds), shown);
        }
    }
}
