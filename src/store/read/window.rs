//! Where the messages begin that a limit shows.

use std::collections::VecDeque;

use crate::error::Result;
use crate::store::record::name::{RecordKind, RecordName};
use crate::store::record::retention::Horizon;

/// How many of the oldest visible names stay in memory, so that an append finds the next beginning among them.
const AHEAD: usize = 512;

/// The messages that a limit shows, as far as their names tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// The limit.
    most: u64,
    /// Whether the limit hides anything.
    is_cut: bool,
    /// Whether the last exchange is longer than the limit, so that only a part of it is visible.
    is_part: bool,
    /// How many messages are visible.
    pub(crate) count: u64,
    /// The oldest visible names, oldest first.
    oldest: VecDeque<RecordName>,
    newest: Option<RecordName>,
}

/// Passes names on, oldest first, until the callback returns `false`. Returns `false` if a file has vanished.
type Names<'a> = &'a mut dyn FnMut(&mut dyn FnMut(RecordName) -> bool) -> Result<bool>;

impl Window {
    /// The window within the newest `count` names, which are as many as the limit shows or, unless it is cut, fewer.
    /// `None` if a file has vanished.
    pub(crate) fn of(
        (most, is_cut): (u64, bool),
        (count, newest): (u64, Option<RecordName>),
        names: Names<'_>,
    ) -> Result<Option<Self>> {
        let oldest = VecDeque::new();
        let mut window = Self { most, is_cut, is_part: false, count, oldest, newest };
        if window.begin(count, names, |name| is_cut && !starts_exchange(name))? {
            return Ok(Some(window));
        }
        window.is_part = true;
        let is_found = window.begin(count, names, |name| name.kind == RecordKind::Tool)?;
        // Either nothing can begin, or a file has vanished.
        Ok((is_found || window.count == 0).then_some(window))
    }

    /// Reads the oldest names after those to leave out. Returns whether there are any.
    fn begin(
        &mut self,
        count: u64,
        names: Names<'_>,
        leaves_out: impl Fn(RecordName) -> bool,
    ) -> Result<bool> {
        let mut left_out = 0;
        let is_there = names(&mut |name| {
            if self.oldest.is_empty() && leaves_out(name) {
                left_out += 1;
            } else {
                self.oldest.push_back(name);
            }
            self.oldest.len() < AHEAD
        })?;
        let is_empty = self.oldest.is_empty();
        self.count = if is_empty { 0 } else { count.saturating_sub(left_out) };
        Ok(is_there && (!is_empty || !self.is_cut))
    }

    pub(crate) fn is_of(&self, most: u64) -> bool {
        self.most == most
    }

    pub(crate) fn horizon(&self) -> Horizon {
        match self.oldest.front() {
            _ if !self.is_cut => Horizon::All,
            Some(first) => Horizon::from(*first),
            None => Horizon::Nothing,
        }
    }

    /// Adds a message. Returns `false` if that does not tell where the visible messages begin now.
    pub(crate) fn add(&mut self, name: RecordName) -> bool {
        if self.newest.is_some_and(|newest| name <= newest) {
            return self.is_cut && self.oldest.front().is_some_and(|first| name < *first);
        }
        self.newest = Some(name);
        if self.is_part && starts_exchange(name) {
            self.oldest.clear();
            self.count = 0;
            self.is_part = false;
        } else if self.is_part && self.oldest.is_empty() && name.kind == RecordKind::Tool {
            return true;
        }
        if self.knows_all() && self.oldest.len() < AHEAD {
            self.oldest.push_back(name);
        }
        self.count += 1;
        self.count <= self.most || self.advance()
    }

    fn knows_all(&self) -> bool {
        self.oldest.len() as u64 == self.count
    }

    /// Moves the beginning on, so that no more are visible than the limit allows.
    fn advance(&mut self) -> bool {
        self.is_cut = true;
        let over = usize::try_from(self.count - self.most).unwrap_or(usize::MAX);
        let knows_all = self.knows_all();
        let after = |begins: fn(RecordName) -> bool| {
            self.oldest.iter().skip(over).position(|name| begins(*name)).map(|at| at + over)
        };
        let mut start = after(starts_exchange).filter(|_| !self.is_part);
        if start.is_none() && (knows_all || self.is_part) {
            self.is_part = true;
            start = after(|name| name.kind != RecordKind::Tool)
                .or_else(|| knows_all.then_some(self.oldest.len()));
        }
        let Some(start) = start else { return false };
        self.oldest.drain(..start);
        self.count -= start as u64;
        true
    }
}

fn starts_exchange(name: RecordName) -> bool {
    matches!(name.kind, RecordKind::User | RecordKind::System)
}
