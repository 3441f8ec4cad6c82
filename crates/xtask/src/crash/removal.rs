//! Each fsync left out in turn: whatever is needed must be missed.

use std::fmt;

use crate::Result;
use crate::crash::cut::{Bench, Power};
use crate::crash::report::{Line, Report};

/// One fsync that was not made.
#[derive(Debug)]
pub(crate) struct Removal {
    step: &'static str,
    number: usize,
    /// Of what.
    of: String,
    pub(crate) came: Came,
}

#[derive(Debug)]
pub(crate) enum Came {
    /// Something was lost: how it ended, and what was found then.
    Noticed(Power, String, String),
    /// Nothing was, for that reason.
    Covered(&'static str),
    /// Nothing was, and nobody knows why.
    Unnoticed,
}

impl fmt::Display for Removal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, number, of, came } = self;
        write!(f, "  {step:<14} {number:>2}  {of:<34} ")?;
        match came {
            Came::Noticed(power, after, violation) => {
                write!(f, "noticed: {power} after {after}: {violation}")
            }
            Came::Covered(reason) => write!(f, "not noticed: {reason}"),
            Came::Unnoticed => f.write_str("NOT NOTICED"),
        }
    }
}

/// Does a step once for each of its fsyncs and each kind of power cut, without that fsync.
pub(crate) fn run(bench: &mut Bench<'_>, line: &mut Line, report: &mut Report) -> Result<()> {
    let calls = bench.syncs()?;
    for (at, call) in calls.iter().enumerate() {
        let number = at + 1;
        report.progress(&format!("{}: without fsync {number}", bench.step.name));
        let mut came = None;
        for power in Power::ALL.into_iter().filter(|power| power.is_cut()) {
            let cuts = bench.cuts(power, Some(number))?;
            for cut in &cuts {
                if let Err(violation) = bench.check(cut) {
                    came = Some(Came::Noticed(power, cut.after.clone(), violation.to_string()));
                    break;
                }
            }
            if came.is_some() {
                break;
            }
        }
        let came = came.unwrap_or(Came::Unnoticed);
        line.removed += 1;
        line.noticed += usize::from(matches!(came, Came::Noticed(..)));
        report.removed(Removal { step: bench.step.name, number, of: call.clone(), came });
    }
    Ok(())
}
