//! Reads a row of contexts or presets. Replaces a value outside the limits by the nearest valid one. Refuses a value
//! that cannot be read, and reads the rest of the row.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use jiff::{SignedDuration, Timestamp};
use rusqlite::types::ValueRef;
use sottovoce::import::Refusal;
use sottovoce::import::RefusalReason::{self, Corrupt, Unstorable};
use sottovoce::persona::Preset;

use crate::fields::time;
use crate::sqlite::{self, text};
use crate::system::LLM_GENERATOR;

/// The most bytes of a replaced value that is kept.
const LONGEST_NOTE: usize = 4096;
/// How far a time may be ahead of the clock.
const AHEAD: SignedDuration = SignedDuration::from_hours(24);

/// The indexes of the columns of both tables.
const NAME: usize = 1;
pub(super) const CREATED_AT: usize = 8;
pub(super) const UPDATED_AT: usize = 9;
const IS_ACTIVE: usize = 10;
const EXPIRES_AT: usize = 11;

/// The longest prefix of a text with at most that many bytes.
pub(super) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

/// A row of contexts or presets.
pub(super) struct Row<'a> {
    row: &'a rusqlite::Row<'a>,
    pub(super) now: Timestamp,
    /// Its name in reports.
    pub(super) name: String,
    /// Values that were replaced, under the names that the system's tools have for them.
    pub(super) notes: BTreeMap<String, String>,
    pub(super) refused: Vec<Refusal>,
}

impl<'a> Row<'a> {
    pub(super) fn new(row: &'a rusqlite::Row<'a>, table: &str, now: Timestamp) -> Self {
        let id = sqlite::value(row, 0).and_then(text).unwrap_or(None);
        let name = id.map_or_else(|| table.to_owned(), |id| format!("{table}/{id}"));
        Self { row, now, name, notes: BTreeMap::new(), refused: Vec::new() }
    }

    fn refuse(&mut self, reason: RefusalReason) {
        self.refused.push(Refusal::new(&self.name, reason));
    }

    fn value(&mut self, at: usize) -> ValueRef<'a> {
        match sqlite::value(self.row, at) {
            Ok(value) => value,
            Err(reason) => {
                self.refuse(reason);
                ValueRef::Null
            }
        }
    }

    /// Keeps a replaced value, unless it is too long.
    pub(super) fn note(&mut self, name: &str, value: String) {
        if value.len() > LONGEST_NOTE {
            self.refuse(Unstorable(
                "one of its values was replaced, and is too long to be kept beside it",
            ));
        } else {
            self.notes.insert(format!("{LLM_GENERATOR}:{name}"), value);
        }
    }

    pub(super) fn id(&self) -> Result<String, RefusalReason> {
        let id = sqlite::value(self.row, 0).and_then(text)?;
        id.ok_or(Corrupt("it has no id"))
    }

    /// Reads a text.
    pub(super) fn text(&mut self, at: usize) -> Option<String> {
        let value = self.value(at);
        text(value).unwrap_or_else(|reason| {
            self.refuse(reason);
            None
        })
    }

    /// Reads the name, cut to a single line of valid length.
    pub(super) fn called(&mut self) -> Option<String> {
        let given = self.text(NAME)?;
        let line: String = given.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let cut = cut(&line, Preset::LONGEST_NAME);
        if cut != given {
            self.note("name", given);
        }
        let is_blank = cut.trim().is_empty();
        (!is_blank).then(|| cut.to_owned())
    }

    /// Reads a time. Refuses one that is too far ahead.
    pub(super) fn moment(&mut self, at: usize) -> Option<Timestamp> {
        let text = self.text(at)?;
        self.refuse(match time::parse(&text) {
            Some((moment, _)) if moment.duration_since(self.now) <= AHEAD => return Some(moment),
            Some(_) => RefusalReason::FromTheFuture,
            None => Corrupt("one of its times cannot be read"),
        });
        None
    }

    /// Whether the row was not deleted.
    pub(super) fn is_active(&mut self) -> bool {
        match self.value(IS_ACTIVE) {
            ValueRef::Null => true,
            ValueRef::Integer(number) => number != 0,
            _ => {
                self.refuse(Corrupt("its is_active is neither 0 nor 1"));
                true
            }
        }
    }

    /// Keeps the expiry as a note. Returns whether it has passed.
    pub(super) fn has_expired(&mut self) -> bool {
        let Some(text) = self.text(EXPIRES_AT) else { return false };
        let expiry = time::parse(&text);
        self.note("expiresAt", text);
        expiry.is_some_and(|(expiry, _)| expiry <= self.now)
    }

    /// Reads a whole number, moved into its limits; `usual` if there is none.
    pub(super) fn whole(
        &mut self,
        at: usize,
        name: &str,
        limits: RangeInclusive<u32>,
        usual: u32,
    ) -> u32 {
        let near = |number: i64| {
            let number = number.clamp((*limits.start()).into(), (*limits.end()).into());
            u32::try_from(number).unwrap_or(usual)
        };
        match self.value(at) {
            ValueRef::Null => usual,
            ValueRef::Integer(number) => {
                let within = near(number);
                if i64::from(within) != number {
                    self.note(name, number.to_string());
                }
                within
            }
            ValueRef::Real(number) => {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "casts keep to the ends of the range"
                )]
                let within = near(number.round() as i64);
                self.note(name, number.to_string());
                within
            }
            _ => {
                self.refuse(Corrupt("one of its numbers cannot be read; the default is used"));
                usual
            }
        }
    }

    /// Reads a number, moved into the range from 0 to 1; `usual` if there is none.
    pub(super) fn share(&mut self, at: usize, name: &str, usual: f64) -> f64 {
        match self.value(at) {
            ValueRef::Null => usual,
            ValueRef::Integer(number @ 0..=1) => {
                if number == 0 {
                    0.0
                } else {
                    1.0
                }
            }
            ValueRef::Integer(number) => {
                self.note(name, number.to_string());
                if number < 0 { 0.0 } else { 1.0 }
            }
            ValueRef::Real(number) if (0.0..=1.0).contains(&number) => number,
            // SQLite stores no NaN.
            ValueRef::Real(number) => {
                self.note(name, number.to_string());
                if number < 0.0 { 0.0 } else { 1.0 }
            }
            _ => {
                self.refuse(Corrupt("one of its numbers cannot be read; the default is used"));
                usual
            }
        }
    }
}
