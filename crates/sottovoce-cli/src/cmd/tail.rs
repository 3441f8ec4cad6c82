//! `sottovoce tail`

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use sottovoce::store::Finding;
use sottovoce::{ConversationStore, StoredMessage};

use crate::exit::{Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::Session;

/// How often a followed conversation is checked. A check costs two system calls.
const PAUSE: Duration = Duration::from_millis(200);

/// How many numbers one read covers, so that a large import never fills memory.
const STEP: u64 = 4096;

const AFTER_HELP: &str = "\
Examples:
  sottovoce tail -n 30                  the newest thirty messages
  sottovoce tail -f                     what is said from now on, too
  sottovoce --scope dm/ann tail         what Ann said, and what she was answered
  sottovoce tail --json | jq .content   for programs";

/// Shows the newest messages
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The number of messages
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    number: usize,

    /// Shows messages as they are appended, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let store = session.store().await?;
    let mut interrupt = Interrupt::listen()?;
    let reading = match &session.thread {
        None => store.read_tail(args.number).await?,
        thread => store.read_thread(thread.as_deref(), args.number).await?,
    };
    let pager = if args.follow { None } else { session.pager()? };
    output::skipped(&reading.skipped);
    let is_meant = |stored: &&Arc<StoredMessage>| {
        session.thread.is_none() || stored.message.thread_id == session.thread
    };
    let show = |messages: &[Arc<StoredMessage>]| {
        let mut meant = messages.iter().filter(is_meant);
        meant.try_for_each(|stored| output::message(stored, session.json))
    };
    show(&reading.messages)?;
    if !args.follow {
        if args.number > 0 && !session.json && reading.messages.is_empty() {
            let thread =
                session.thread.as_ref().map(|id| format!(" in thread {}", output::one_line(id)));
            output::note(&format!(
                "nothing is kept in {}{}",
                store.scope(),
                thread.unwrap_or_default()
            ));
        }
        drop(pager);
        return Ok(Exit::Done);
    }
    // By number and not by time: an imported message may be older than those shown.
    let mut seen = reading.last_seq;
    let mut said: HashSet<Finding> = reading.skipped.into_iter().collect();
    let mut pause = PAUSE;
    loop {
        tokio::select! {
            biased;
            _ = interrupt.heard() => return Ok(Exit::Done),
            () = tokio::time::sleep(pause) => {}
        }
        let newest = store.read_tail(0).await?;
        warn(newest.skipped, &mut said);
        let last = newest.last_seq.min(seen.saturating_add(STEP));
        if seen < last {
            let reading = store.read_seqs(seen + 1..=last).await?;
            warn(reading.skipped, &mut said);
            show(&reading.messages)?;
            seen = last;
        }
        pause = if last < newest.last_seq { Duration::ZERO } else { PAUSE };
    }
}

/// Prints findings that were not printed before.
fn warn(skipped: Vec<Finding>, said: &mut HashSet<Finding>) {
    let new: Vec<Finding> =
        skipped.into_iter().filter(|finding| said.insert(finding.clone())).collect();
    output::skipped(&new);
}
