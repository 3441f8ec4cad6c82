//! `sottovoce sync --watch`

use std::sync::Arc;
use std::time::Duration;

use sottovoce::Config;
use sottovoce_sync::{Background, SyncError, Syncer};
use tokio::sync::mpsc;

use crate::cmd::share::report;
use crate::exit::{Exit, Outcome};
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::Session;

/// The interval if servers do not sync.
const INTERVAL: u64 = 60;

/// Syncs until Ctrl-C. Prints what a sync has brought. The log has the failures, except for one of the first sync that
/// will not pass by itself.
pub(super) async fn run(session: &Session, config: &Config, syncer: Syncer) -> Outcome {
    if syncer.address().await?.is_none() {
        return Err(SyncError::NotSetUp.into());
    }
    let seconds = match config.sync.interval_seconds {
        0 => INTERVAL,
        seconds => seconds,
    };
    let background = Background::new(Arc::new(syncer), Duration::from_secs(seconds));
    let (send, mut results) = mpsc::unbounded_channel();
    let syncing = background.run(move |result| drop(send.send(result)));
    tokio::pin!(syncing);
    let mut interrupt = Interrupt::listen()?;
    let mut is_first = true;
    output::note("syncing until Ctrl-C");
    loop {
        let result = tokio::select! {
            biased;
            _ = interrupt.heard() => return Ok(Exit::Interrupted),
            Some(result) = results.recv() => result,
            () = &mut syncing => return Ok(Exit::Done),
        };
        match result {
            Ok(report) if report::is_worth_telling(&report) => {
                report::show(session, &report)?;
            }
            Err(error) if is_first && !error.is_transient() => return Err(error.into()),
            _ => {}
        }
        is_first = false;
    }
}
