//! Skips each fsync in turn, and checks that skipping a needed one is noticed.

use std::fmt;

use crate::crash::cut::{Bench, End};
use crate::task::Result;

/// A skipped fsync.
#[derive(Debug)]
pub(crate) struct Removal {
    pub(crate) step: &'static str,
    number: usize,
    /// What it would have synced.
    of: String,
    pub(crate) came: Came,
}

#[derive(Debug)]
pub(crate) enum Came {
    /// A loss was noticed: the ending and the finding.
    Noticed(End, String, String),
    /// No loss, for this reason.
    Covered(&'static str),
    /// No loss, for an unknown reason.
    Unnoticed,
}

impl fmt::Display for Removal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, number, of, came } = self;
        let of = of.split_once(".tmp-").map_or(of.as_str(), |(folder, _)| folder);
        write!(f, "{step:<14} {number:>2}  {of:<24} ")?;
        match came {
            Came::Noticed(end, after, violation) => {
                let after = after.split('(').next().unwrap_or_default();
                let violation: String = violation.chars().take(120).collect();
                write!(f, "noticed, {end} after {after}: {violation}")
            }
            Came::Covered(reason) => write!(f, "not noticed: {reason}"),
            Came::Unnoticed => f.write_str("NOT NOTICED"),
        }
    }
}

/// Runs a step once for each of its fsyncs and each ending, without that fsync.
pub(crate) fn run(bench: &mut Bench<'_>, progress: &dyn Fn(&str)) -> Result<Vec<Removal>> {
    let calls = std::mem::take(&mut bench.calls);
    let mut removals = Vec::new();
    for (at, call) in calls.iter().enumerate().filter(|(_, call)| is_sync(call)) {
        let number = removals.len() + 1;
        progress(&format!("{}: without fsync {number}", bench.step.name));
        let came = match notice(bench, number)? {
            Some(noticed) => noticed,
            None => {
                let (before, after) = calls.split_at(at);
                reason(before, call, after.get(1..).unwrap_or_default())
                    .map_or(Came::Unnoticed, Came::Covered)
            }
        };
        removals.push(Removal { step: bench.step.name, number, of: of(call).to_owned(), came });
    }
    Ok(removals)
}

fn notice(bench: &mut Bench<'_>, number: usize) -> Result<Option<Came>> {
    for end in End::ALL.into_iter().filter(|end| end.cut().is_some()) {
        for cut in bench.cuts(end, Some(number))? {
            if let Err(violation) = bench.check(&cut) {
                return Ok(Some(Came::Noticed(end, cut.after, violation)));
            }
        }
    }
    Ok(None)
}

fn is_sync(call: &str) -> bool {
    call.starts_with("fsync(") || call.starts_with("fdatasync(")
}

/// The file that a call concerns, as the disk's own path.
fn of(call: &str) -> &str {
    call.split(['<', '>']).nth(1).unwrap_or_default()
}

/// Why nothing is lost without an fsync on these file systems. Others promise less, so the store makes it.
fn reason(before: &[String], call: &str, after: &[String]) -> Option<&'static str> {
    let name = of(call).rsplit('/').next().unwrap_or_default();
    if name == "head" {
        return Some("records beyond an old head count all the same, as long as they open");
    }
    let acknowledged = after.iter().position(|call| call.starts_with("write(1<"));
    let until_then = after.get(..acknowledged.unwrap_or(after.len())).unwrap_or_default();
    if name.starts_with(".tmp") {
        let renamed = after.iter().find(|call| call.contains(name));
        let is_reserve = renamed.is_some_and(|call| call.contains("\"reserve\""));
        is_reserve
            .then_some("it holds room, not words: without it, a full disk may refuse to forget")
    } else if until_then.iter().any(|call| is_sync(call)) {
        Some("a later fsync makes it durable as well, before anything is acknowledged")
    } else if before.last().is_some_and(|last| is_sync(last) && of(last).starts_with(of(call))) {
        Some("nothing has changed in it: it is for what a process before may have left")
    } else if before.last().is_some_and(|call| call.starts_with("unlink")) {
        Some(
            "what it removes for good lies elsewhere, and nothing was written in its place so soon",
        )
    } else {
        None
    }
}
