//! `sottovoce tail`

use std::sync::Arc;
use std::time::Duration;

use sottovoce::{ConversationStore, FileConversationStore, Finding, Reading, StoredMessage};

use crate::exit::{Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::Session;

/// How often a followed conversation is looked at; a look costs two system calls.
const PAUSE: Duration = Duration::from_millis(200);

/// Shows the newest messages
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    number: usize,

    /// Goes on showing messages as they are appended, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let store = session.store(&config).await?;
    let mut interrupt = Interrupt::listen()?;
    // One at least, so that what is shown and what is followed come of the same look.
    let reading = store.read_tail(args.number.max(1)).await?;
    output::skipped(&reading.skipped);
    let show = |messages: &[Arc<StoredMessage>]| {
        messages.iter().try_for_each(|stored| output::message(stored, session.json))
    };
    let before = reading.messages.len().saturating_sub(args.number);
    show(reading.messages.get(before..).unwrap_or_default())?;
    if !args.follow {
        return Ok(Exit::Done);
    }
    let mut seen = newest(&reading).unwrap_or(0);
    let mut said = reading.skipped;
    loop {
        tokio::select! {
            biased;
            _ = interrupt.heard() => return Ok(Exit::Done),
            () = tokio::time::sleep(PAUSE) => {}
        }
        let reading = after(&store, seen).await?;
        let new: Vec<Finding> =
            reading.skipped.iter().filter(|finding| !said.contains(finding)).cloned().collect();
        output::skipped(&new);
        said.extend(new);
        show(&reading.messages)?;
        seen = newest(&reading).unwrap_or(seen);
    }
}

/// The messages with a higher number than `seen`, however many are appended meanwhile.
async fn after(store: &FileConversationStore, seen: u64) -> sottovoce::Result<Reading> {
    let mut wanted = 1;
    loop {
        let mut reading = store.read_tail(wanted).await?;
        let gap = newest(&reading).map_or(0, |newest| newest.saturating_sub(seen));
        let gap = usize::try_from(gap).unwrap_or(usize::MAX);
        if gap <= wanted {
            reading.messages.retain(|stored| stored.seq > seen);
            return Ok(reading);
        }
        wanted = gap;
    }
}

fn newest(reading: &Reading) -> Option<u64> {
    reading.messages.iter().map(|stored| stored.seq).max()
}
