//! `sottovoce forget`

use std::io::{self, IsTerminal, Write};
use std::ops::RangeInclusive;

use serde::Serialize;
use sottovoce::{ConversationStore, Finding};

use crate::exit::{Exit, Failure, Outcome};
use crate::output::{self, BOLD};
use crate::session::Session;

/// Deletes messages for ever
///
/// Shows them and asks first. The deletion itself is recorded, so that `verify` finds no hole, and a backup put back
/// later does not bring them back. Copies that were made elsewhere are not reached.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Args {
    /// Numbers as `tail` shows them: 7, or 3-9
    #[arg(value_name = "NUMBER|RANGE", value_parser = parse_range, required_unless_present = "last")]
    numbers: Vec<RangeInclusive<u64>>,

    /// The newest message
    #[arg(long, conflicts_with = "numbers")]
    last: bool,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Done<'a> {
    removed: &'a [u64],
    left: &'a [Finding],
}

fn parse_range(text: &str) -> Result<RangeInclusive<u64>, String> {
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
    if args.last {
        let newest = store.read_tail(1).await?.messages;
        args.numbers = newest.iter().map(|stored| stored.seq..=stored.seq).collect();
    }
    let mut messages = Vec::new();
    for range in &args.numbers {
        messages.extend(store.read_seqs(range.clone()).await?.messages);
    }
    if messages.is_empty() {
        return Err(Failure::input(
            "there is no such message",
            "`sottovoce tail` shows the numbers",
        ));
    }
    if !args.yes {
        if session.json || !io::stdin().is_terminal() {
            return Err(Failure::input(
                format!("this would delete {} messages for ever", messages.len()),
                "say --yes if that is what you want",
            ));
        }
        for stored in &messages {
            output::message(stored, false)?;
        }
        if !confirmed(messages.len())? {
            output::note("nothing was deleted");
            return Ok(Exit::Done);
        }
    }
    let forgotten = store.forget(&args.numbers).await?;
    if session.json {
        output::json(&Done { removed: &forgotten.removed, left: &forgotten.left })?;
    } else {
        output::skipped(&forgotten.left);
        output::note(&format!("deleted {} messages for ever", forgotten.removed.len()));
    }
    Ok(Exit::Done)
}

fn confirmed(number: usize) -> io::Result<bool> {
    let mut out = anstream::stderr();
    write!(out, "{BOLD}Delete these {number} for ever? [y/N]{BOLD:#} ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
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
}
