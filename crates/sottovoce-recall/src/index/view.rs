//! What is derived from all segments of an index: flat lists over all turns and passages.
//!
//! A passage has a slot in these lists. Five empty slots lie between two sessions, so that looking at a passage's
//! neighbours needs no look at where its session ends.

use std::ops::Range;

use super::segments::{Entry, Segments};
use crate::{secret::Word, segment::Place, turn::Role};

/// Passages each way that count as beside one, and empty slots between two sessions.
pub(super) const REACH: usize = 5;

/// Flat lists over all turns and passages of an index, in order.
#[derive(Default)]
pub(super) struct View {
    pub turns: Vec<TurnView>,
    /// The slots of each turn.
    pub turn_slots: Vec<Range<u32>>,
    /// The slot of each passage.
    pub slot_of: Vec<u32>,
    /// All slots.
    pub slots: usize,
    /// The slots of each session.
    pub sessions: Vec<Range<usize>>,
    /// Where each segment stands.
    pub parts: Vec<Part>,
    pub speakers: Vec<Word>,
    threads: Vec<Word>,
    /// A bit for each language that occurs.
    pub languages: u8,
    /// How long the lists are without the tail.
    packed: Lengths,
}

/// A turn among all turns.
pub(super) struct TurnView {
    pub seq: u64,
    pub day: i32,
    pub session: u32,
    /// The number of its speaker plus one.
    pub speaker: u32,
    /// The number of its thread plus one.
    pub thread: u32,
    pub role: Role,
}

/// Where a segment stands in the lists.
pub(super) struct Part {
    pub first_turn: usize,
    pub first_passage: usize,
}

#[derive(Default, Clone, Copy)]
struct Lengths {
    turns: usize,
    passages: usize,
    sessions: usize,
    last_session_end: usize,
    slots: usize,
    parts: usize,
}

impl View {
    /// The lists of an index from nothing.
    pub(super) fn new(segments: &Segments) -> Self {
        let mut view = Self { slots: REACH, ..Self::default() };
        let mut last = None;
        for entry in segments.packs.values() {
            view.add(entry, &mut last);
        }
        view.packed = Lengths {
            turns: view.turns.len(),
            passages: view.slot_of.len(),
            sessions: view.sessions.len(),
            last_session_end: view.sessions.last().map_or(0, |session| session.end),
            slots: view.slots,
            parts: view.parts.len(),
        };
        view.renewed(segments)
    }

    /// The lists after a change of the tail alone.
    pub(super) fn renewed(mut self, segments: &Segments) -> Self {
        let packed = self.packed;
        self.turns.truncate(packed.turns);
        self.turn_slots.truncate(packed.turns);
        self.slot_of.truncate(packed.passages);
        self.sessions.truncate(packed.sessions);
        if let Some(session) = self.sessions.last_mut() {
            session.end = packed.last_session_end;
        }
        self.slots = packed.slots;
        self.parts.truncate(packed.parts);
        let packs = segments.packs.values().rev().map(|entry| &entry.segment);
        let last_pack = packs.clone().find(|segment| !segment.is_empty());
        let mut last = last_pack.and_then(|segment| Some(segment.place(segment.turns.last()?)));
        for entry in &segments.tail {
            self.add(entry, &mut last);
        }
        self.slots += REACH;
        self
    }

    /// Adds a segment after the others.
    fn add<'a>(&mut self, entry: &'a Entry, last: &mut Option<Place<'a>>) {
        let segment = &entry.segment;
        self.parts.push(Part { first_turn: self.turns.len(), first_passage: self.slot_of.len() });
        let speakers = numbers_of(&mut self.speakers, &segment.speakers);
        let threads = numbers_of(&mut self.threads, &segment.threads);
        for (turn, range) in segment.turn_passages() {
            let place = segment.place(turn);
            let continues =
                !self.sessions.is_empty() && last.is_some_and(|last| last.continues(place));
            *last = Some(place);
            if !continues {
                if !self.sessions.is_empty() {
                    self.slots += REACH;
                }
                self.sessions.push(self.slots..self.slots);
            }
            let start = self.slots;
            self.slots += range.len();
            self.slot_of.extend(start as u32..self.slots as u32);
            if let Some(session) = self.sessions.last_mut() {
                session.end = self.slots;
            }
            self.languages |= 1 << turn.language.number();
            let number = |numbers: &[u32], of: u32| {
                let number = of.checked_sub(1).and_then(|of| numbers.get(of as usize));
                number.copied().unwrap_or_default()
            };
            self.turn_slots.push(start as u32..self.slots as u32);
            self.turns.push(TurnView {
                seq: turn.seq,
                day: turn.day,
                session: self.sessions.len() as u32 - 1,
                speaker: number(&speakers, turn.speaker),
                thread: number(&threads, turn.thread),
                role: turn.role,
            });
        }
    }

    /// The number of a thread plus one, 0 for none; `None` if no turn is of it.
    pub(super) fn thread(&self, thread: Option<&str>) -> Option<u32> {
        let Some(thread) = thread else { return Some(0) };
        let known = self.threads.iter().position(|other| other.as_str() == thread);
        known.map(|index| index as u32 + 1)
    }
}

/// The rarity of a stem that `frequency` of `passages` hold.
pub(super) fn rarity(passages: usize, frequency: usize) -> f32 {
    (passages as f32 + 1.).ln() - (frequency as f32 + 0.5).ln()
}

/// The numbers of names plus one. New names join the known ones.
fn numbers_of(known: &mut Vec<Word>, names: &[Word]) -> Vec<u32> {
    let number = |name: &Word| {
        let index = known.iter().position(|other| other == name).unwrap_or_else(|| {
            known.push(name.clone());
            known.len() - 1
        });
        index as u32 + 1
    };
    names.iter().map(number).collect()
}
