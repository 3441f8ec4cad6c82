//! A row of contexts or presets: each value as near to what it says as the limits here allow. What is wrong with one
//! value is refused alone.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use jiff::{SignedDuration, Timestamp};
use rusqlite::types::ValueRef;
use sottovoce::Preset;
use sottovoce::import::Refusal;
use sottovoce::import::RefusalReason::{self, Corrupt, Unstorable};

use crate::fields::time;
use crate::sqlite::{self, text};
use crate::system::LLM_GENERATOR;

/// The most bytes of a value that is kept beside what was made of it.
const LONGEST_NOTE: usize = 4096;
/// How far ahead of the clock a time may lie.
const AHEAD: SignedDuration = SignedDuration::from_hours(24);

/// Where the columns of both tables are.
const NAME: usize = 1;
pub(super) const CREATED_AT: usize = 8;
pub(super) const UPDATED_AT: usize = 9;
const IS_ACTIVE: usize = 10;
const EXPIRES_AT: usize = 11;

/// As much of a text as has at most so many bytes.
pub(super) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

/// A row that is being read.
pub(super) struct Row<'a> {
    row: &'a rusqlite::Row<'a>,
    pub(super) now: Timestamp,
    /// How reports name it.
    pub(super) name: String,
    /// What could not be taken as it was, by the names that the system's tools have for it.
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

    /// Keeps what a value was, if that is not long.
    pub(super) fn note(&mut self, name: &str, value: String) {
        if value.len() > LONGEST_NOTE {
            self.refuse(Unstorable("a value of it is too long to be kept as it was"));
        } else {
            self.notes.insert(format!("{LLM_GENERATOR}:{name}"), value);
        }
    }

    pub(super) fn id(&self) -> Result<String, RefusalReason> {
        let id = sqlite::value(self.row, 0).and_then(text)?;
        id.ok_or(Corrupt("it has no id"))
    }

    /// A text, or none.
    pub(super) fn text(&mut self, at: usize) -> Option<String> {
        let value = self.value(at);
        text(value).unwrap_or_else(|reason| {
            self.refuse(reason);
            None
        })
    }

    /// Its name as a single line that is not too long.
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

    /// A moment that is not far ahead.
    pub(super) fn moment(&mut self, at: usize) -> Option<Timestamp> {
        let text = self.text(at)?;
        match time::parse(&text) {
            Some((moment, _)) if moment.duration_since(self.now) <= AHEAD => Some(moment),
            Some(_) => {
                self.refuse(RefusalReason::FromTheFuture);
                None
            }
            None => {
                self.refuse(Corrupt("a time of it is none"));
                None
            }
        }
    }

    /// Whether it was not deleted.
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

    /// Notes until when the system would have kept it. Whether that is over.
    pub(super) fn has_expired(&mut self) -> bool {
        let Some(text) = self.text(EXPIRES_AT) else { return false };
        let expiry = time::parse(&text);
        self.note("expiresAt", text);
        expiry.is_some_and(|(expiry, _)| expiry <= self.now)
    }

    /// A whole number within these limits, or the nearest; `usual` where there is none.
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
                self.refuse(Corrupt("a figure of it is no number; the usual one is taken"));
                usual
            }
        }
    }

    /// A number from 0 to 1, or the nearest; `usual` where there is none.
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
            // SQLite has no number that is none.
            ValueRef::Real(number) => {
                self.note(name, number.to_string());
                if number < 0.0 { 0.0 } else { 1.0 }
            }
            _ => {
                self.refuse(Corrupt("a figure of it is no number; the usual one is taken"));
                usual
            }
        }
    }
}
