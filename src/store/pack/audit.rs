//! Reading a pack while holding it to what its name says.

use crate::error::Result;
use crate::store::name::RecordName;
use crate::store::pack::lines::Lines;
use crate::store::pack::{INCOMPLETE, Line, Pack, PackName};

/// A pack's lines from the front, and whatever is wrong with them.
pub(crate) struct Audit<'a> {
    lines: Lines<'a>,
    claimed: PackName,
    /// What the name should have been, of the lines so far.
    seen: Option<PackName>,
    before: Option<RecordName>,
    ended: bool,
}

/// A line, or the end, and what is wrong there.
#[derive(Debug, Default)]
pub(crate) struct Audited {
    pub(crate) line: Option<Line>,
    pub(crate) wrong: Option<&'static str>,
}

impl<'a> Audit<'a> {
    pub(crate) fn new(pack: &'a Pack) -> Self {
        Self { lines: Lines::new(pack), claimed: pack.name, seen: None, before: None, ended: false }
    }

    /// `None` after the end.
    pub(crate) fn next(&mut self) -> Result<Option<Audited>> {
        if self.ended {
            return Ok(None);
        }
        let Some(line) = self.lines.next()? else {
            self.ended = true;
            let wrong = (self.seen != Some(self.claimed)).then_some(INCOMPLETE);
            return Ok(wrong.map(|wrong| Audited { line: None, wrong: Some(wrong) }));
        };
        let Some(name) = line.name else {
            let wrong = Some("a line of it is not a record's");
            return Ok(Some(Audited { line: Some(line), wrong }));
        };
        PackName::add(&mut self.seen, name);
        let in_order = self.before.is_none_or(|before| before < name);
        self.before = Some(name);
        let wrong = (!in_order).then_some("its records are out of order");
        Ok(Some(Audited { line: Some(line), wrong }))
    }

    /// The next line as long as all is well; [`Err`] in the inner place once it is not.
    pub(crate) fn sound(&mut self) -> Result<Result<Option<Line>, Lie>> {
        Ok(match self.next()? {
            None => Ok(None),
            Some(Audited { wrong: Some(_), .. }) => Err(Lie),
            Some(Audited { line, .. }) => Ok(line),
        })
    }

    /// Reads all the rest; whether all is well.
    pub(crate) fn finish_sound(mut self) -> Result<bool> {
        loop {
            match self.sound()? {
                Err(Lie) => return Ok(false),
                Ok(None) => return Ok(true),
                Ok(Some(_)) => {}
            }
        }
    }
}

/// A pack does not hold what its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lie;
