//! What a sync does and has done, for people and programs.

use std::sync::Arc;
use std::time::Duration;

use indicatif::ProgressBar;
use sottovoce_sync::{Background, Failure as _, Problem, Repeated, SyncProgress, SyncReport};
use tokio::sync::mpsc;

use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{self, Object, object};
use crate::session::Session;

/// How long a program that ends waits for the remote to take what was said last.
pub(super) const LAST: Duration = Duration::from_secs(3);

/// A report as JSON.
pub(super) fn row(report: &SyncReport) -> Object {
    let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    object!(
        "received": report.received, "removed": report.removed, "artifacts": report.artifacts,
        "published": report.published, "forgotten": report.forgotten,
        "beganAgain": report.began_again, "problems": problems,
    )
}

/// Runs a sync with its progress, until it is done or interrupted.
pub(super) async fn attended(
    bar: &ProgressBar,
    syncing: impl Future<Output = Result<SyncReport, impl Into<Failure>>>,
) -> Result<SyncReport, Failure> {
    let report = Interrupt::listen()?.or("the next sync goes on from here", syncing).await;
    bar.finish_and_clear();
    report?.map_err(Into::into)
}

/// A bar that shows a sync's progress.
pub(super) fn bar() -> (ProgressBar, impl Fn(SyncProgress) + Send + Sync) {
    let bar = output::progress(None, "syncing");
    let shown = bar.clone();
    (bar, move |progress| shown.set_message(described(progress)))
}

/// A bar that shows the progress of a sync that is counted in records instead of bytes.
pub(super) fn records_bar() -> (ProgressBar, impl Fn(SyncProgress) + Send + Sync) {
    let bar = output::progress(None, "syncing");
    let shown = bar.clone();
    let show = move |progress| match progress {
        SyncProgress::Receiving { done, total } => {
            shown.set_message(format!("receiving: {done} of {total} records"));
        }
        progress => shown.set_message(described(progress)),
    };
    (bar, show)
}

fn described(progress: SyncProgress) -> String {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    match progress {
        SyncProgress::Receiving { done, total } => {
            format!("receiving: {:.1} of {:.1} MiB", mib(done), mib(total))
        }
        SyncProgress::Publishing { done } => format!("publishing: {}", output::messages(done)),
        _ => "syncing".to_owned(),
    }
}

/// Reports a sync: one line, and a warning for each problem.
pub(super) fn show(session: &Session, report: &SyncReport) -> Outcome {
    if session.json {
        output::json(&row(report))?;
    } else {
        output::line(in_words(report))?;
        if report.began_again {
            output::note(
                "this device publishes anew: the remote, or this store, was in another state than it was left in",
            );
        }
        for problem in &report.problems {
            output::warning(&problem.to_string());
        }
        if report.problems.iter().any(Problem::is_mended) {
            output::note(
                "`sottovoce sync --mend` on a device that has the messages publishes them again",
            );
        }
    }
    Ok(Exit::of(report.problems.is_empty()))
}

fn in_words(report: &SyncReport) -> String {
    let mut done = Vec::new();
    for (verb, number, what, more) in [
        ("received", report.received, "message", ""),
        ("received", report.artifacts, "artifact", ""),
        ("published", report.published, "message", ""),
        ("forgot", report.removed, "message", " that others forgot"),
        ("told others to forget", report.forgotten, "message", ""),
    ] {
        if number > 0 {
            done.push(format!("{verb} {}{more}", output::counted(number as u64, what)));
        }
    }
    match done.is_empty() {
        true => "nothing new".to_owned(),
        false => done.join(", "),
    }
}

/// Syncs until Ctrl-C or SIGTERM, and publishes what was said last. Prints what a sync has brought. The log has the failures,
/// except for one of the first sync that will not pass by itself.
pub(super) async fn watch(
    session: &Session,
    work: Arc<impl Repeated<Error: Into<Failure>>>,
    interval: Duration,
) -> Outcome {
    let background = Background::new(work, interval);
    let (send, mut results) = mpsc::unbounded_channel();
    let mut syncing = Box::pin(background.run(move |result| drop(send.send(result))));
    let mut interrupt = Interrupt::listen()?;
    let mut is_first = true;
    output::note("syncing until Ctrl-C");
    loop {
        let result = tokio::select! {
            biased;
            _ = interrupt.heard() => break,
            Some(result) = results.recv() => result,
            () = &mut syncing => return Ok(Exit::Done),
        };
        match result {
            Ok(report) if report != SyncReport::default() => {
                show(session, &report)?;
            }
            Err(error) if is_first && !error.is_transient() => return Err(error.into()),
            _ => {}
        }
        is_first = false;
    }
    // One that is under way has to end before what was said last can go out.
    drop(syncing);
    background.finish(LAST).await;
    Ok(Exit::Interrupted)
}
