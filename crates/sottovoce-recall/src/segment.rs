//! A segment: what the index knows about a run of turns.

mod builder;
mod bytes;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, fmt, ops::Range};

use zeroize::Zeroizing;

pub use builder::BuildOptions;
pub(crate) use builder::Builder;

use crate::{
    meaning::{Meaning, Meanings},
    secret::Word,
    text::language::Language,
    turn::{Role, Turn},
};

/// A pause after which a new session begins, in milliseconds. On real chats, 2 to 10 hours rank alike and 4 best.
const PAUSE: i64 = 4 * 60 * 60 * 1000;

/// Everything the index knows about a run of turns: their words as stems, what they mean, when they were said and by
/// whom. It holds no text. It is secret nonetheless: its words are overwritten on drop, and `Debug` shows counts only.
#[derive(Clone, Default, PartialEq)]
pub struct Segment {
    pub(crate) turns: Vec<TurnRow>,
    pub(crate) passages: Vec<PassageRow>,
    /// The stems of all passages, one passage after another, without repetition within one.
    pub(crate) entries: Zeroizing<Vec<u32>>,
    /// Stems, sorted.
    pub(crate) stems: Vec<Word>,
    /// The passages of stem `n` are `postings[posting_ends[n - 1]..posting_ends[n]]`, ascending.
    pub(crate) posting_ends: Vec<u32>,
    pub(crate) postings: Vec<u32>,
    pub(crate) meanings: Meanings,
    pub(crate) speakers: Vec<Word>,
    pub(crate) threads: Vec<Word>,
}

/// A turn of a segment.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct TurnRow {
    pub seq: u64,
    pub at: i64,
    pub day: i32,
    /// Letters of its text and caption.
    pub length: u32,
    /// The number of its last passage plus one.
    pub passages_end: u32,
    /// The session that the caller named, plus one.
    pub session: u32,
    /// The speaker's number plus one.
    pub speaker: u32,
    /// The thread's number plus one.
    pub thread: u32,
    pub role: Role,
    pub language: Language,
}

/// A passage of a segment.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct PassageRow {
    /// The number of its last entry plus one.
    pub entries_end: u32,
    /// Where it stands in its turn's text, in bytes.
    pub start: u32,
    pub end: u32,
}

/// What decides whether two turns belong to one session.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Place<'a> {
    pub at: i64,
    pub session: u32,
    pub thread: Option<&'a str>,
}

impl Place<'_> {
    /// Whether a turn here and one at `next` belong to the same session.
    pub(crate) fn continues(self, next: Self) -> bool {
        let is_same = match (self.session, next.session) {
            (0, 0) => next.at.saturating_sub(self.at) <= PAUSE,
            (session, next) => session == next,
        };
        is_same && self.thread == next.thread
    }
}

impl Segment {
    /// Builds a segment from a run of turns in the order of the conversation.
    pub fn build<'a>(turns: impl IntoIterator<Item = Turn<'a>>, options: &BuildOptions) -> Self {
        let mut builder = Builder::new(options);
        for turn in turns {
            builder.add(&turn);
        }
        builder.finish()
    }

    /// Joins segments that follow each other: the same as one that was built from all their turns.
    pub fn join<'a>(segments: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut builder = Builder::new(&BuildOptions::default());
        for segment in segments {
            builder.add_from(segment, &mut false, |_| true);
        }
        builder.finish()
    }

    /// The segment without the turns that `keep` refuses: the same as one that was built without them. A turn behind a
    /// refused one loses its meaning, which may tell of that.
    pub fn retain(&self, keep: impl Fn(u64) -> bool) -> Self {
        self.retain_after(&mut false, keep)
    }

    /// The same behind another segment, of which the last turn may be refused.
    pub(crate) fn retain_after(
        &self,
        is_behind_refused: &mut bool,
        keep: impl Fn(u64) -> bool,
    ) -> Self {
        let mut builder = Builder::new(&BuildOptions::default());
        builder.add_from(self, is_behind_refused, keep);
        builder.finish()
    }

    /// How many turns it covers.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// Whether it covers no turn.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// The numbers of its turns, in order.
    pub fn seqs(&self) -> impl Iterator<Item = u64> {
        self.turns.iter().map(|turn| turn.seq)
    }

    /// The turns without meanings and their passages in bytes of their texts, from the last one on.
    pub(crate) fn without_meaning(&self) -> impl Iterator<Item = (u64, Vec<Range<usize>>)> {
        let turns: Vec<_> = self.turn_passages().collect();
        turns.into_iter().rev().filter(|(_, range)| self.meanings.get(range.start).is_none()).map(
            |(turn, range)| {
                let rows = self.passages.get(range).unwrap_or_default();
                let bytes = rows.iter().map(|row| row.start as usize..row.end as usize);
                (turn.seq, bytes.collect())
            },
        )
    }

    /// How many turns have meanings.
    pub(crate) fn with_meaning(&self) -> usize {
        self.turn_passages().filter(|(_, range)| self.meanings.get(range.start).is_some()).count()
    }

    /// Sets what turns mean, one for each of their passages.
    pub(crate) fn set_meanings(&mut self, meanings: &HashMap<u64, Vec<Meaning>>) {
        let mut places = Vec::new();
        for (turn, range) in self.turn_passages() {
            let found = meanings.get(&turn.seq).filter(|found| found.len() == range.len());
            places.extend(found.map(|found| (range, found)));
        }
        for (passage, meaning) in places.into_iter().flat_map(|(range, found)| range.zip(found)) {
            self.meanings.set_meaning(passage, meaning);
        }
    }

    pub(crate) fn speaker(&self, turn: &TurnRow) -> Option<&str> {
        Some(self.speakers.get(turn.speaker.checked_sub(1)? as usize)?.as_str())
    }

    pub(crate) fn place(&self, turn: &TurnRow) -> Place<'_> {
        let thread =
            turn.thread.checked_sub(1).and_then(|thread| self.threads.get(thread as usize));
        Place { at: turn.at, session: turn.session, thread: thread.map(Word::as_str) }
    }

    /// The passages of each turn.
    pub(crate) fn turn_passages(&self) -> impl Iterator<Item = (&TurnRow, Range<usize>)> {
        let mut start = 0;
        self.turns.iter().map(move |turn| {
            let range = start..turn.passages_end as usize;
            start = range.end;
            (turn, range)
        })
    }

    /// The entries of a passage.
    pub(crate) fn entries(&self, passage: usize) -> &[u32] {
        let start = passage.checked_sub(1).and_then(|before| self.passages.get(before));
        let start = start.map_or(0, |before| before.entries_end as usize);
        let end = self.passages.get(passage).map_or(start, |passage| passage.entries_end as usize);
        self.entries.get(start..end).unwrap_or_default()
    }

    /// The number of a stem.
    pub(crate) fn find_stem(&self, stem: &str) -> Option<usize> {
        self.stems.binary_search_by(|other| other.as_str().cmp(stem)).ok()
    }

    /// The passages that hold a stem, ascending.
    pub(crate) fn stem_passages(&self, stem: usize) -> &[u32] {
        self.postings.get(between(&self.posting_ends, stem)).unwrap_or_default()
    }
}

/// The range of item `index` in a list of ends.
fn between(ends: &[u32], index: usize) -> Range<usize> {
    let start =
        index.checked_sub(1).and_then(|before| ends.get(before)).map_or(0, |end| *end as usize);
    start..ends.get(index).map_or(start, |end| *end as usize)
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment")
            .field("turns", &self.turns.len())
            .field("passages", &self.passages.len())
            .field("stems", &self.stems.len())
            .finish_non_exhaustive()
    }
}
