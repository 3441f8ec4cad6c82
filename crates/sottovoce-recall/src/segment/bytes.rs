//! A segment as bytes, to be sealed and stored by the caller.
//!
//! `SVRI`, the versions of the algorithm and of its data (two bytes each), then names, stems, turns, passages, entries
//! and meanings. Numbers are LEB128; differences that may be negative are zigzag. Postings are made on reading.

use std::ops::RangeInclusive;

use zeroize::Zeroizing;

use super::{PassageRow, Segment, TurnRow};
use crate::{
    error::SegmentError, meaning::DIMENSIONS, secret::Word, text::language::Language, turn::Role,
};

const MAGIC: &[u8; 4] = b"SVRI";
/// Raised when the same turns would give other bytes.
const ALGORITHM: u16 = 3;
/// Raised when the stop words or the encoder change.
pub(super) const DATA: u16 = 6;
/// Bytes of the longest word or name.
const LONGEST_STRING: u64 = 1024;

impl Segment {
    /// The segment as bytes. They are as secret as the messages.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        // Growth would leave copies in freed memory.
        let strings = self.stems.iter().chain(&self.speakers).chain(&self.threads);
        let letters: usize = strings.map(|string| string.as_str().len() + 4).sum();
        let words = self.entries.len() * 4 + self.passages.len() * (DIMENSIONS + 12);
        let rows = self.turns.len() * 48 + self.passages.len() * 24;
        let mut out = Writer(Zeroizing::new(Vec::with_capacity(letters + words + rows + 1024)));
        out.0.extend_from_slice(MAGIC);
        out.0.extend_from_slice(&ALGORITHM.to_le_bytes());
        out.0.extend_from_slice(&DATA.to_le_bytes());
        out.strings(&self.speakers);
        out.strings(&self.threads);
        out.strings(&self.stems);
        out.turns(self);
        out.passages(self);
        self.entries.iter().for_each(|stem| out.number(u64::from(*stem)));
        for passage in 0..self.passages.len() {
            match self.meanings.get(passage) {
                Some(([scale, tells], numbers)) => {
                    out.0.extend_from_slice(&scale.to_le_bytes());
                    out.0.extend_from_slice(&tells.to_le_bytes());
                    out.0.extend(numbers.iter().map(|number| *number as u8));
                }
                None => out.0.extend_from_slice(&0f32.to_le_bytes()),
            }
        }
        out.0
    }

    /// Reads a segment. It checks every number, so that no bytes make a later call panic or read elsewhere.
    ///
    /// # Errors
    ///
    /// [`SegmentError`] says whether another version wrote the bytes, or whether they are damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SegmentError> {
        let mut from = Reader(bytes);
        if from.take(4)? != MAGIC {
            return Err(SegmentError::Damaged);
        }
        for known in [ALGORITHM, DATA] {
            match from.u16()?.cmp(&known) {
                std::cmp::Ordering::Less => return Err(SegmentError::Older),
                std::cmp::Ordering::Greater => return Err(SegmentError::Newer),
                std::cmp::Ordering::Equal => {}
            }
        }
        let mut segment =
            Self { speakers: from.strings()?, threads: from.strings()?, ..Self::default() };
        segment.stems = from.strings()?;
        if !segment.stems.is_sorted_by(|a, b| a < b) {
            return Err(SegmentError::Damaged);
        }
        from.turns(&mut segment)?;
        from.passages(&mut segment)?;
        from.entries(&mut segment)?;
        from.meanings(&mut segment)?;
        if !from.0.is_empty() {
            return Err(SegmentError::Damaged);
        }
        segment.index_stems();
        Ok(segment)
    }
}

struct Writer(Zeroizing<Vec<u8>>);

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number > 0x7f {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn difference(&mut self, from: i64, to: i64) {
        let difference = to.wrapping_sub(from);
        self.number((difference << 1 ^ difference >> 63) as u64);
    }

    /// Strings, each as the letters that it shares with the one before and the rest.
    fn strings(&mut self, strings: &[Word]) {
        self.number(strings.len() as u64);
        let mut before = "";
        for string in strings.iter().map(Word::as_str) {
            let shared = before.bytes().zip(string.bytes()).take_while(|(a, b)| a == b).count();
            let rest = string.as_bytes().get(shared..).unwrap_or_default();
            self.number(shared as u64);
            self.number(rest.len() as u64);
            self.0.extend_from_slice(rest);
            before = string;
        }
    }

    fn turns(&mut self, segment: &Segment) {
        self.number(segment.turns.len() as u64);
        let (mut seq, mut at, mut day) = (0, 0, 0);
        for (turn, passages) in segment.turn_passages() {
            self.difference(seq as i64, turn.seq as i64);
            self.difference(at, turn.at);
            self.difference(day, i64::from(turn.day));
            self.number(u64::from(turn.length));
            self.number(passages.len() as u64);
            self.number(u64::from(turn.session));
            self.number(u64::from(turn.speaker));
            self.number(u64::from(turn.thread));
            self.number((turn.language.number() << 2) as u64 | u64::from(turn.role.number()));
            (seq, at, day) = (turn.seq, turn.at, i64::from(turn.day));
        }
    }

    fn passages(&mut self, segment: &Segment) {
        for (passage, row) in segment.passages.iter().enumerate() {
            self.number(segment.entries(passage).len() as u64);
            self.number(u64::from(row.start));
            self.number(u64::from(row.end.saturating_sub(row.start)));
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], SegmentError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(SegmentError::Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, SegmentError> {
        let bytes = self.take(2)?.try_into().map_err(|_| SegmentError::Damaged)?;
        Ok(u16::from_le_bytes(bytes))
    }

    fn number(&mut self) -> Result<u64, SegmentError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(SegmentError::Damaged)?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(SegmentError::Damaged)
    }

    fn u32(&mut self) -> Result<u32, SegmentError> {
        u32::try_from(self.number()?).map_err(|_| SegmentError::Damaged)
    }

    /// A number that must be smaller than `end`.
    fn below(&mut self, end: usize) -> Result<u32, SegmentError> {
        let number = self.u32()?;
        if (number as usize) < end { Ok(number) } else { Err(SegmentError::Damaged) }
    }

    /// How many items follow. Each takes at least a byte.
    fn count(&mut self) -> Result<usize, SegmentError> {
        let count = self.u32()? as usize;
        if count <= self.0.len() { Ok(count) } else { Err(SegmentError::Damaged) }
    }

    fn difference(&mut self, from: i64) -> Result<i64, SegmentError> {
        let number = self.number()?;
        Ok(from.wrapping_add((number >> 1) as i64 ^ -((number & 1) as i64)))
    }

    fn strings(&mut self) -> Result<Vec<Word>, SegmentError> {
        let count = self.count()?;
        let mut strings: Vec<Word> = Vec::with_capacity(count);
        let mut letters = Zeroizing::new(Vec::with_capacity(1024));
        for _ in 0..count {
            let shared = self.number()?;
            let length = self.count()?;
            if shared > letters.len() as u64 || shared + length as u64 > LONGEST_STRING {
                return Err(SegmentError::Damaged);
            }
            letters.truncate(shared as usize);
            letters.extend_from_slice(self.take(length)?);
            let string = std::str::from_utf8(&letters).map_err(|_| SegmentError::Damaged)?;
            strings.push(string.into());
        }
        Ok(strings)
    }

    fn turns(&mut self, segment: &mut Segment) -> Result<(), SegmentError> {
        let count = self.count()?;
        segment.turns.reserve_exact(count);
        let (mut seq, mut at, mut day, mut passages_end) = (0, 0, 0, 0u32);
        for _ in 0..count {
            seq = self.difference(seq)?;
            at = self.difference(at)?;
            day = self.difference(day)?;
            let length = self.u32()?;
            passages_end = passages_end.checked_add(self.u32()?).ok_or(SegmentError::Damaged)?;
            let session = self.u32()?;
            let speaker = self.below(segment.speakers.len() + 1)?;
            let thread = self.below(segment.threads.len() + 1)?;
            let kind = self.below(16)? as u8;
            segment.turns.push(TurnRow {
                seq: seq as u64,
                at,
                day: i32::try_from(day).map_err(|_| SegmentError::Damaged)?,
                length,
                passages_end,
                session,
                speaker,
                thread,
                role: Role::from_number(kind & 3).ok_or(SegmentError::Damaged)?,
                language: Language::from_number(kind >> 2).ok_or(SegmentError::Damaged)?,
            });
        }
        if passages_end as usize > self.0.len() {
            return Err(SegmentError::Damaged);
        }
        Ok(())
    }

    fn passages(&mut self, segment: &mut Segment) -> Result<(), SegmentError> {
        let count = segment.turns.last().map_or(0, |turn| turn.passages_end as usize);
        segment.passages.reserve_exact(count);
        let mut entries_end = 0u32;
        for _ in 0..count {
            entries_end = entries_end.checked_add(self.u32()?).ok_or(SegmentError::Damaged)?;
            let start = self.u32()?;
            let end = start.checked_add(self.u32()?).ok_or(SegmentError::Damaged)?;
            segment.passages.push(PassageRow { entries_end, start, end });
        }
        if entries_end as usize > self.0.len() {
            return Err(SegmentError::Damaged);
        }
        Ok(())
    }

    fn entries(&mut self, segment: &mut Segment) -> Result<(), SegmentError> {
        let count = segment.passages.last().map_or(0, |passage| passage.entries_end as usize);
        segment.entries.reserve_exact(count);
        // The passage in which each stem was last seen, plus one.
        let mut last = vec![0u32; segment.stems.len()];
        let mut start = 0;
        for (passage, row) in (1..).zip(&segment.passages) {
            for _ in start..row.entries_end {
                let stem = self.below(segment.stems.len())?;
                let before = last.get_mut(stem as usize);
                if before.map(|last| std::mem::replace(last, passage)) == Some(passage) {
                    return Err(SegmentError::Damaged);
                }
                segment.entries.push(stem);
            }
            start = row.entries_end;
        }
        Ok(())
    }

    fn within(&mut self, range: RangeInclusive<f32>) -> Result<f32, SegmentError> {
        let bytes = self.take(4)?.try_into().map_err(|_| SegmentError::Damaged)?;
        let number = f32::from_le_bytes(bytes);
        if range.contains(&number) { Ok(number) } else { Err(SegmentError::Damaged) }
    }

    fn meanings(&mut self, segment: &mut Segment) -> Result<(), SegmentError> {
        let damaged = SegmentError::Damaged;
        segment.meanings.resize(segment.passages.len());
        for passage in 0..segment.passages.len() {
            let scale = self.within(0. ..=1.)?;
            if scale > 0. {
                let tells = self.within(-1. ..=1.)?;
                let numbers: &[u8; DIMENSIONS] =
                    self.take(DIMENSIONS)?.try_into().map_err(|_| damaged)?;
                segment.meanings.set(passage, [scale, tells], &numbers.map(|number| number as i8));
            }
        }
        Ok(())
    }
}
