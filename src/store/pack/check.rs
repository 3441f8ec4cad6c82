//! Reading a pack while holding it to what its name says.

use crate::error::Result;
use crate::store::pack::lines::Lines;
use crate::store::pack::{INCOMPLETE, Line, Pack};
use crate::store::record::name::RecordName;
use crate::store::record::pack_name::PackName;

/// What a pack's lines amount to, of a part of it or of the whole.
#[derive(Debug, Default)]
pub(crate) struct PackCheck {
    /// What the name should have been.
    seen: Option<PackName>,
    first: Option<RecordName>,
    last: Option<RecordName>,
}

impl PackCheck {
    /// Takes in the next line; what is wrong with it, if anything is.
    pub(crate) fn add(&mut self, line: &Line) -> Option<&'static str> {
        let Some(name) = line.name else {
            return Some("a line of it is not a record's");
        };
        PackName::add(&mut self.seen, name);
        let before = self.last.replace(name);
        self.first.get_or_insert(name);
        before.is_some_and(|before| before >= name).then_some(DISORDERED)
    }

    /// Takes in the part after this one.
    pub(crate) fn join(&mut self, next: Self) -> Option<&'static str> {
        let is_disordered = self.last.zip(next.first).is_some_and(|(last, first)| last >= first);
        self.seen = match (self.seen, next.seen) {
            (Some(front), Some(back)) => Some(front.joined(back)),
            (front, back) => front.or(back),
        };
        self.first = self.first.or(next.first);
        self.last = next.last.or(self.last);
        is_disordered.then_some(DISORDERED)
    }

    /// What is wrong with the whole, if it is not what its name says.
    pub(crate) fn end(&self, claimed: PackName) -> Option<&'static str> {
        (self.seen != Some(claimed)).then_some(INCOMPLETE)
    }
}

const DISORDERED: &str = "its records are out of order";

/// A pack's lines from the front, and whatever is wrong with them.
pub(crate) struct PackAudit<'a> {
    lines: Lines<'a>,
    claimed: PackName,
    check: PackCheck,
    ended: bool,
}

/// A line, or the end, and what is wrong there.
#[derive(Debug, Default)]
pub(crate) struct CheckedLine {
    pub(crate) line: Option<Line>,
    pub(crate) wrong: Option<&'static str>,
}

impl<'a> PackAudit<'a> {
    pub(crate) fn new(pack: &'a Pack) -> Self {
        let (lines, claimed) = (Lines::new(pack), pack.name);
        Self { lines, claimed, check: PackCheck::default(), ended: false }
    }

    /// `None` after the end.
    pub(crate) fn next(&mut self) -> Result<Option<CheckedLine>> {
        if self.ended {
            return Ok(None);
        }
        let Some(line) = self.lines.next()? else {
            self.ended = true;
            let wrong = self.check.end(self.claimed);
            return Ok(wrong.map(|wrong| CheckedLine { line: None, wrong: Some(wrong) }));
        };
        let wrong = self.check.add(&line);
        Ok(Some(CheckedLine { line: Some(line), wrong }))
    }

    /// The next line as long as all is well; [`Err`] in the inner place once it is not.
    pub(crate) fn next_valid(&mut self) -> Result<Result<Option<Line>, Mismatch>> {
        Ok(match self.next()? {
            None => Ok(None),
            Some(CheckedLine { wrong: Some(_), .. }) => Err(Mismatch),
            Some(CheckedLine { line, .. }) => Ok(line),
        })
    }

    /// Reads all the rest; whether all is well.
    pub(crate) fn finish_valid(mut self) -> Result<bool> {
        loop {
            match self.next_valid()? {
                Err(Mismatch) => return Ok(false),
                Ok(None) => return Ok(true),
                Ok(Some(_)) => {}
            }
        }
    }
}

/// A pack does not hold what its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mismatch;
