//! Syncs until Ctrl-C.

use std::sync::Arc;
use std::time::Duration;

use sottovoce_sync::{Background, Failure as _, Repeated};
use tokio::sync::mpsc;

use crate::cmd::share::report;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::Session;

/// Syncs until Ctrl-C. Prints what a sync has brought. The log has the failures, except for one of the first sync that
/// will not pass by itself.
pub(super) async fn run(
    session: &Session,
    work: Arc<impl Repeated<Error: Into<Failure>>>,
    interval: Duration,
) -> Outcome {
    let background = Background::new(work, interval);
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
