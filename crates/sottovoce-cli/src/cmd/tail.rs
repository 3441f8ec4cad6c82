//! `sottovoce tail`

use std::time::Duration;

use sottovoce::{ConversationStore, StoredMessage};

use crate::exit::{Exit, Outcome};
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
    let reading = store.read_tail(args.number).await?;
    output::skipped(&reading.skipped);
    let show = |messages: &[std::sync::Arc<StoredMessage>]| {
        messages.iter().try_for_each(|stored| output::message(stored, session.json))
    };
    show(&reading.messages)?;
    if !args.follow {
        return Ok(Exit::Done);
    }
    let newest = store.read_tail(1).await?;
    let mut seen = newest.messages.last().map_or(0, |stored| stored.seq);
    loop {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return Ok(Exit::Done),
            () = tokio::time::sleep(PAUSE) => {}
        }
        let newest = store.read_tail(1).await?.messages.last().map_or(0, |stored| stored.seq);
        if newest > seen {
            show(&store.read_seqs(seen + 1..=newest).await?.messages)?;
            seen = newest;
        }
    }
}
