//! `sottovoce stats`

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use indicatif::ProgressBar;
use jiff::civil::Date;
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, ToSpan};
use sottovoce::admin::Stats;
use sottovoce::store::Finding;
use sottovoce::{ChatMessage, ChatRole, ConversationStore, FileConversationStore, Scope};

use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::attended;
use crate::output::{self, Object, byte_size, duration, moment, object};
use crate::session::Session;

/// Shows the size of a conversation, and when it expires
///
/// The blocks show the number of messages on each day, up to the day of the last one. Days are in the speaker's local
/// time if it is known.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Was a picture; the page draws it now
    #[arg(long, hide = true, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    if args.plot.is_some() {
        let help = "open `sottovoce page`: under Numbers, it draws messages and tokens over time";
        return Err(Failure::input("stats draws no pictures", help));
    }
    let store = session.store_or_empty().await?;
    let stats = store.stats().await?;
    let work = async |bar: &_| Tally::of(&store, bar).await;
    let tally = attended("counting", stats.message_count, "", work).await??;
    output::skipped(&tally.skipped);
    if session.json {
        let [user, assistant, system, tool] = tally.sum();
        let roles = object!("user": user, "assistant": assistant, "system": system, "tool": tool);
        // The number of messages on each of the last days, up to the last message's day.
        let row = row(&session.scope, &stats).and("roles", &roles);
        output::json(&row.and("perDay", &tally.last_days()))?;
    } else {
        show(&session.scope, &stats)?;
        if stats.artifacts > 0 {
            output::line(format!("{:<12} {}", "artifacts", stats.artifacts))?;
        }
        tally.show()?;
    }
    Ok(Exit::Done)
}

/// The statistics as JSON.
pub(crate) fn row(scope: &Scope, stats: &Stats) -> Object {
    object!("scope": scope.to_string()).all_of(stats)
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
    row("size", byte_size(stats.bytes))?;
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
    match stats.expires_at {
        _ if !both.is_empty() => both.join(", "),
        None => "everything, for ever".to_owned(),
        Some(_) => "everything, until it expires".to_owned(),
    }
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

/// How many numbers one read covers.
const STEP: u64 = 4096;
/// How many days the line of blocks shows.
const DAYS: i64 = 30;
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A count for each role, in the order of [`ChatRole::ALL`].
type Counts = [u64; 4];

/// A conversation's counts by day. Only the counts stay in memory.
#[derive(Debug, Default)]
struct Tally {
    days: BTreeMap<Date, Counts>,
    skipped: Vec<Finding>,
}

impl Tally {
    /// Counts all readable messages.
    async fn of(store: &FileConversationStore, bar: &ProgressBar) -> Result<Self, Failure> {
        let mut tally = Self::default();
        let last = store.read_tail(0).await?.last_seq;
        for first in (1..=last).step_by(STEP as usize) {
            let reading = store.read_seqs(first..=last.min(first + STEP - 1)).await?;
            bar.inc(reading.messages.len() as u64);
            for stored in &reading.messages {
                tally.count(&stored.message);
            }
            Finding::add_new(&mut tally.skipped, reading.skipped);
        }
        Ok(tally)
    }

    fn count(&mut self, message: &ChatMessage) {
        let day = self.days.entry(day_of(message)).or_default().iter_mut().zip(ChatRole::ALL);
        day.filter(|(_, role)| *role == message.role).for_each(|(messages, _)| *messages += 1);
    }

    fn sum(&self) -> Counts {
        let mut sums = Counts::default();
        for day in self.days.values() {
            sums.iter_mut().zip(day).for_each(|(sum, messages)| *sum += messages);
        }
        sums
    }

    /// The number of messages on each of the last days, up to the last message's day; empty without messages.
    fn last_days(&self) -> Vec<u64> {
        let Some((&last, _)) = self.days.last_key_value() else { return Vec::new() };
        let day = |back: i64| last.checked_sub(back.days()).ok();
        let messages = |date: Date| self.days.get(&date).map_or(0, |day| day.iter().sum());
        (0..DAYS).rev().filter_map(day).map(messages).collect()
    }

    /// Prints text on standard output.
    fn show(&self) -> io::Result<()> {
        let Some((last, _)) = self.days.last_key_value() else { return Ok(()) };
        let roles = ChatRole::ALL.into_iter().zip(self.sum());
        let roles: Vec<String> = roles
            .filter(|(_, messages)| *messages > 0)
            .map(|(role, messages)| format!("{role} {messages}", role = role.as_str()))
            .collect();
        output::line(format!("{:<12} {}", "roles", roles.join(", ")))?;
        let days = self.last_days();
        let most = days.iter().max().copied().unwrap_or(0);
        output::line(format!(
            "{:<12} {}  {} days up to {last}, at most {most}",
            "per day",
            sparkline(&days),
            days.len()
        ))
    }
}

/// The day where the message was said, or here if that is unknown.
fn day_of(message: &ChatMessage) -> Date {
    let offset =
        message.offset_minutes.map(|minutes| Offset::from_seconds(i32::from(minutes) * 60));
    let zone = offset.and_then(Result::ok).map_or_else(TimeZone::system, TimeZone::fixed);
    zone.to_datetime(message.said_at()).date()
}

/// Numbers as blocks of heights up to the greatest. Only zero has the lowest block.
fn sparkline(numbers: &[u64]) -> String {
    let most = numbers.iter().max().copied().unwrap_or(0).max(1);
    let steps = BLOCKS.len() as u64 - 1;
    let height = |number: u64| (u128::from(number) * u128::from(steps)).div_ceil(u128::from(most));
    let block = |number: &u64| BLOCKS.get(usize::try_from(height(*number)).unwrap_or(0)).copied();
    numbers.iter().filter_map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_reads_well() {
        for (seconds, shown) in
            [(0, "0 s"), (86_400, "1 d"), (5400, "1 h 30 min"), (90_061, "1 d 1 h"), (59, "59 s")]
        {
            assert_eq!(duration(seconds), shown);
        }
    }

    fn said(role: ChatRole, at: &str, offset: Option<i16>) -> ChatMessage {
        let mut message = ChatMessage::at(role, "some words", at.parse().unwrap());
        message.offset_minutes = offset;
        message
    }

    fn tally(messages: &[ChatMessage]) -> Tally {
        let mut tally = Tally::default();
        messages.iter().for_each(|message| tally.count(message));
        tally
    }

    #[test]
    fn blocks_grow_with_the_numbers_and_only_nothing_is_the_lowest() {
        assert_eq!(sparkline(&[0, 1, 500, 1000]), "▁▂▅█");
        assert_eq!(sparkline(&[0, 0]), "▁▁");
        assert_eq!(sparkline(&[u64::MAX, 1]), "█▂");
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn a_day_is_that_of_whoever_spoke() {
        let tally = tally(&[
            said(ChatRole::User, "2025-08-24T23:30:00Z", Some(120)),
            said(ChatRole::User, "2025-08-25T01:00:00Z", Some(-180)),
            said(ChatRole::Tool, "2025-08-24T23:30:00Z", None),
        ]);
        let days: Vec<_> = tally.days.iter().map(|(day, of)| (day.to_string(), *of)).collect();
        assert_eq!(
            days,
            [("2025-08-24".to_owned(), [1, 0, 0, 1]), ("2025-08-25".to_owned(), [1, 0, 0, 0])]
        );
    }

    #[test]
    fn the_last_days_end_with_the_last_message_and_have_gaps() {
        let tally = tally(&[
            said(ChatRole::User, "2025-06-01T12:00:00Z", None),
            said(ChatRole::User, "2025-08-22T12:00:00Z", None),
            said(ChatRole::User, "2025-08-24T12:00:00Z", None),
            said(ChatRole::Assistant, "2025-08-24T12:00:01Z", None),
        ]);
        let days = tally.last_days();
        assert_eq!(days.len(), 30);
        assert_eq!(days[27..], [1, 0, 2]);
        assert_eq!(days.iter().sum::<u64>(), 3, "what is older is not in it");
        assert!(Tally::default().last_days().is_empty());
        // There are fewer days at the beginning of time.
        let first = [said(ChatRole::User, "-009999-01-03T00:00:00Z", None)];
        assert!(super::Tally::last_days(&super::tests::tally(&first)).len() <= 30);
    }
}
