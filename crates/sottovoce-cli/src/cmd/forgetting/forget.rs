//! `sottovoce forget`

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use sottovoce::store::{ForgetReport, merged_ranges};
use sottovoce::{ConversationStore, Error, FileConversationStore, StoredMessage};

use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

pub(crate) mod announce;
mod whole;

/// Deletes messages permanently
///
/// Shows everything that will be deleted, and asks first. A range means the messages in it at that time. The deletion
/// is recorded, so that `verify` reports no gap, and restoring a backup does not bring the messages back. Copies made
/// elsewhere stay. Within the conversation, restored copies are deleted with their originals and the other way round.
/// Both are removed from snapshots, and summaries made from them are deleted. A number that `verify` reports as
/// missing can be recorded as deleted by naming it alone.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    /// Numbers as `tail` shows them: 7, or 3-9
    #[arg(value_name = "NUMBER|RANGE", value_parser = parse_range, required_unless_present_any = ["last", "all"])]
    numbers: Vec<RangeInclusive<u64>>,

    /// The newest message
    #[arg(long, conflicts_with = "numbers")]
    last: bool,

    /// The whole conversation with its snapshots, artifacts, settings and folder; with --thread, all messages of that
    /// thread. A context keeps its name, its personality and its limits
    #[arg(long, conflicts_with_all = ["numbers", "last"])]
    all: bool,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) fn parse_range(text: &str) -> Result<RangeInclusive<u64>, String> {
    let number =
        |text: &str| text.trim().parse::<u64>().map_err(|_| "not a number or a range such as 3-9");
    let (first, last) = match text.split_once("..").or_else(|| text.split_once('-')) {
        Some((first, last)) => (number(first)?, number(last.trim_start_matches('='))?),
        None => (number(text)?, number(text)?),
    };
    if first == 0 || first > last {
        return Err("numbers start at 1, and a range goes upwards".to_owned());
    }
    Ok(first..=last)
}

pub(crate) async fn run(session: &Session, mut args: Args) -> Outcome {
    let config = session.config()?;
    let store = session.store(&config).await?;
    if args.all {
        return whole::forget(session, &config, store, args.yes).await;
    }
    if args.last {
        let newest = newest(&store, session.thread.as_deref()).await?;
        args.numbers = newest.iter().map(|stored| stored.seq..=stored.seq).collect();
    }
    let wanted = Wanted::find(&store, args.numbers, session.thread.as_deref()).await?;
    if wanted.messages.is_empty() && wanted.lost.is_empty() {
        return Err(no_such_message());
    }
    for number in &wanted.lost {
        output::note(&format!(
            "number {number} holds no readable message; it will be recorded as gone, unless it is already"
        ));
    }
    // Exactly these messages, even if the range has grown since.
    let what = What::Numbers(wanted.numbers());
    let Some(forgotten) = forget_if_sure(session, &store, &what, "", args.yes).await? else {
        return Ok(Exit::Done);
    };
    let nothing =
        forgotten.removed.is_empty() && forgotten.numbers == 0 && forgotten.snapshots == 0;
    if wanted.messages.is_empty() && nothing {
        let (numbers, are) = match wanted.lost.len() {
            1 => ("the number", "is"),
            _ => ("the numbers", "are"),
        };
        return Err(Failure::input(
            format!("{numbers} {are} forgotten already"),
            "`sottovoce tail` shows the existing numbers",
        ));
    }
    match session.json {
        true => announce::json(&forgotten)?,
        false => announce::done(&forgotten),
    }
    Ok(Exit::Done)
}

/// What to forget.
enum What {
    Numbers(Vec<RangeInclusive<u64>>),
    All,
}

/// Forgets what was announced after the user confirms; `None` if the user does not. `whose` stands before the number
/// of messages if they are not listed.
async fn forget_if_sure(
    session: &Session,
    store: &FileConversationStore,
    what: &What,
    whose: &str,
    yes: bool,
) -> Result<Option<ForgetReport>, Failure> {
    if yes {
        return Ok(Some(match what {
            What::Numbers(numbers) => store.forget(numbers).await?,
            What::All => store.forget_all().await?,
        }));
    }
    loop {
        let plan = match what {
            What::Numbers(numbers) => store.plan_forget(numbers).await?,
            What::All => store.plan_forget_all().await?,
        };
        let deed = announce::deed(whose, &plan);
        session.check_attended(&deed)?;
        if whose.is_empty() {
            announce::show(store, &plan).await?;
        }
        if !output::confirmed(&format!("Really {deed}?"))? {
            output::note("nothing was deleted");
            return Ok(None);
        }
        match store.forget_planned(&plan).await {
            Err(Error::MoreThanAnnounced) => output::note("the conversation has changed meanwhile"),
            forgotten => return Ok(Some(forgotten?)),
        }
    }
}

/// The newest message, of the thread if one is given.
async fn newest(
    store: &FileConversationStore,
    thread: Option<&str>,
) -> Result<Vec<Arc<StoredMessage>>, Failure> {
    Ok(match thread {
        None => store.read_tail(1).await?.messages,
        thread => store.read_thread(thread, 1).await?.messages,
    })
}

fn no_such_message() -> Failure {
    Failure::input("there is no such message", "`sottovoce tail` shows the numbers")
}

/// The messages to forget.
struct Wanted {
    messages: Vec<Arc<StoredMessage>>,
    /// Numbers that were given singly and have no readable message.
    lost: BTreeSet<u64>,
}

impl Wanted {
    async fn find(
        store: &FileConversationStore,
        named: Vec<RangeInclusive<u64>>,
        thread: Option<&str>,
    ) -> Result<Self, Failure> {
        let mut lost: BTreeSet<u64> = named
            .iter()
            .filter(|range| range.start() == range.end())
            .map(|range| *range.start())
            .collect();
        let mut messages = Vec::new();
        for range in merged_ranges(named) {
            messages.extend(store.read_seqs(range).await?.messages);
        }
        for stored in &messages {
            lost.remove(&stored.seq);
        }
        // A number that was never used cannot be lost.
        let last = store.read_tail(0).await?.last_seq;
        lost.retain(|number| *number <= last);
        if thread.is_some() {
            // The thread of a lost message is unknown.
            lost.clear();
            messages.retain(|stored| stored.message.thread_id.as_deref() == thread);
        }
        Ok(Self { messages, lost })
    }

    fn numbers(&self) -> Vec<RangeInclusive<u64>> {
        let numbers = self.messages.iter().map(|stored| stored.seq).chain(self.lost.clone());
        merged_ranges(numbers.map(|number| number..=number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_understood_and_nonsense_is_not() {
        assert_eq!(parse_range("7"), Ok(7..=7));
        assert_eq!(parse_range("3-9"), Ok(3..=9));
        assert_eq!(parse_range("3..9"), Ok(3..=9));
        assert_eq!(parse_range("3..=9"), Ok(3..=9));
        for wrong in ["", "0", "-1", "9-3", "a", "1-", "1-2-3", "18446744073709551616"] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
    }
    #[test]
    fn every_number_is_meant_once() {
        assert_eq!(
            merged_ranges(vec![7..=9, 1..=3, 2..=8, 11..=11, 12..=12, 12..=12]),
            [1..=9, 11..=12]
        );
        assert_eq!(merged_ranges(vec![5..=u64::MAX, u64::MAX..=u64::MAX]), [5..=u64::MAX]);
        assert_eq!(merged_ranges(Vec::new()), []);
    }
}
