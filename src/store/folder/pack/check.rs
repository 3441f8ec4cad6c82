//! Checks a pack against its name while reading it.

use crate::error::Result;
use crate::store::folder::pack::pack_lines::PackLines;
use crate::store::folder::pack::{INCOMPLETE, Line, Pack};
use crate::store::record::name::RecordName;
use crate::store::record::name::pack_name::PackName;

/// A summary of a pack's lines, or of a part of them, to compare with its name.
#[derive(Debug, Default)]
pub(crate) struct PackCheck {
    /// The name that these lines should have.
    seen: Option<PackName>,
    first: Option<RecordName>,
    last: Option<RecordName>,
}

impl PackCheck {
    /// Adds the next line. Returns what is wrong with it, if anything.
    pub(crate) fn add(&mut self, line: &Line) -> Option<&'static str> {
        let Some(name) = line.name else {
            return Some("a line of it is not a record's");
        };
        PackName::add(&mut self.seen, name);
        let before = self.last.replace(name);
        self.first.get_or_insert(name);
        before.is_some_and(|before| before >= name).then_some(DISORDERED)
    }

    /// Adds the summary of the following part.
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

    /// Compares the complete summary with the name. Returns what is wrong, if anything.
    pub(crate) fn end(&self, claimed: PackName) -> Option<&'static str> {
        (self.seen != Some(claimed)).then_some(INCOMPLETE)
    }
}

const DISORDERED: &str = "its records are out of order";

/// Reads a pack's lines from the front and checks each.
pub(crate) struct PackAudit<'a> {
    lines: PackLines<'a>,
    claimed: PackName,
    check: PackCheck,
    ended: bool,
}

/// A line, or the end, and what is wrong with it.
#[derive(Debug, Default)]
pub(crate) struct CheckedLine {
    pub(crate) line: Option<Line>,
    pub(crate) wrong: Option<&'static str>,
}

impl<'a> PackAudit<'a> {
    pub(crate) fn new(pack: &'a Pack) -> Self {
        let (lines, claimed) = (PackLines::new(pack), pack.name);
        Self { lines, claimed, check: PackCheck::default(), ended: false }
    }

    /// The next line; `None` after the end.
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

    /// The next line; the inner result is [`Err`] once anything is wrong.
    pub(crate) fn next_valid(&mut self) -> Result<Result<Option<Line>, Mismatch>> {
        Ok(match self.next()? {
            None => Ok(None),
            Some(CheckedLine { wrong: Some(_), .. }) => Err(Mismatch),
            Some(CheckedLine { line, .. }) => Ok(line),
        })
    }

    /// Reads the rest. Returns whether all of it is valid.
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

/// A pack's contents do not match its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mismatch;
