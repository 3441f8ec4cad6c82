//! What is derived from all segments of an index: flat lists over all turns and passages.
//!
//! A passage has a slot in these lists. Five empty slots lie between two sessions, so that looking at a passage's
//! neighbours needs no look at where its session ends.

use std::ops::Range;

use zeroize::Zeroizing;

use super::{
    Entry, Index,
    numbers::{PassageWords, WordNumbers},
};
use crate::{
    secret::Word,
    segment::{
        Norms, Place, REPEATED, Segment,
        norms::{self, REACH},
    },
    text::cues::Cues,
    turn::Role,
};

/// Fixed-point logarithms: their sums do not depend on the order.
const UNIT: f32 = 65536.;

/// Flat lists over all turns and passages of an index, in order.
#[derive(Default)]
pub(super) struct View {
    pub turns: Vec<TurnView>,
    /// The slots of each turn.
    pub turn_slots: Vec<Range<u32>>,
    /// The slot of each passage.
    pub slot_of: Vec<u32>,
    /// The slots of each session.
    pub sessions: Vec<Range<usize>>,
    /// By slot: one over the length of the passage's vector, and of the vector with its neighbours'.
    pub inverse_own: Vec<f32>,
    pub inverse_around: Vec<f32>,
    /// By slot: cues, and the passages that state a standing wish.
    pub cues: Vec<Cues>,
    pub standing: Vec<u32>,
    /// By slot: the mean rarity of the passage's stems.
    pub rarity: Vec<f32>,
    /// By slot: the sum of the logarithms of the stems' frequencies, and one over the number of stems.
    logarithms: Vec<i32>,
    inverse_stems: Vec<f32>,
    /// What is known of each segment.
    pub parts: Vec<Part>,
    pub speakers: Vec<Word>,
    threads: Vec<Word>,
    /// Pieces that occur, ascending.
    pub pieces: Zeroizing<Vec<u16>>,
    has_piece: Zeroizing<Vec<bool>>,
    pub numbers: WordNumbers,
    pub has_assistant: bool,
    /// A bit for each language that occurs.
    pub languages: u8,
    /// The frequencies of which `logarithms` are.
    frequencies: Vec<u32>,
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
    pub passages: usize,
    pub words: Option<PassageWords>,
}

#[derive(Default, Clone, Copy)]
struct Lengths {
    turns: usize,
    passages: usize,
    sessions: usize,
    last_session_end: usize,
    slots: usize,
    standing: usize,
    parts: usize,
}

impl View {
    /// The lists of an index from nothing.
    pub(super) fn new(index: &Index) -> Self {
        let mut view = Self { has_piece: Zeroizing::new(vec![false; 1 << 16]), ..Self::default() };
        view.frequencies.clone_from(&index.frequencies);
        view.pad();
        let logarithms = view.logarithm_table();
        let mut joints = Vec::new();
        let mut last = None;
        for entry in index.packs.values() {
            view.add(entry, &logarithms, &mut last, &mut joints);
        }
        view.packed = Lengths {
            turns: view.turns.len(),
            passages: view.slot_of.len(),
            sessions: view.sessions.len(),
            last_session_end: view.sessions.last().map_or(0, |session| session.end),
            slots: view.cues.len(),
            standing: view.standing.len(),
            parts: view.parts.len(),
        };
        view.measure_joints(index, &joints);
        view.renewed(index)
    }

    /// The lists after a change of the tail alone.
    pub(super) fn renewed(mut self, index: &Index) -> Self {
        let packed = self.packed;
        self.turns.truncate(packed.turns);
        self.turn_slots.truncate(packed.turns);
        self.slot_of.truncate(packed.passages);
        self.sessions.truncate(packed.sessions);
        if let Some(session) = self.sessions.last_mut() {
            session.end = packed.last_session_end;
        }
        self.cues.truncate(packed.slots);
        self.inverse_own.truncate(packed.slots);
        self.inverse_around.truncate(packed.slots);
        self.logarithms.truncate(packed.slots);
        self.inverse_stems.truncate(packed.slots);
        self.standing.truncate(packed.standing);
        self.parts.truncate(packed.parts);
        self.count_again(index);
        let logarithms = self.logarithm_table();
        let mut joints = Vec::new();
        let last_pack = index
            .packs
            .values()
            .rev()
            .map(|entry| &entry.segment)
            .find(|segment| !segment.is_empty());
        let mut last = last_pack.and_then(|segment| Some(segment.place(segment.turns.last()?)));
        for entry in &index.tail {
            self.add(entry, &logarithms, &mut last, &mut joints);
        }
        self.pad();
        self.measure_joints(index, &joints);
        let has = self.has_piece.iter().filter(|has| **has).count();
        let pieces = (0..=u16::MAX).zip(self.has_piece.iter());
        self.pieces = Zeroizing::new(Vec::with_capacity(has));
        self.pieces.extend(pieces.filter_map(|(piece, has)| has.then_some(piece)));
        let all = (self.slot_of.len() as f32 + 1.).ln();
        self.rarity.clear();
        let sums = self.logarithms.iter().zip(&self.inverse_stems);
        self.rarity.extend(sums.map(|(sum, inverse)| {
            if *inverse > 0. { all - *sum as f32 * inverse * (1. / UNIT) } else { 0. }
        }));
        self
    }

    /// Ends a session with empty slots.
    fn pad(&mut self) {
        let slots = self.cues.len() + REACH;
        self.cues.resize(slots, Cues::default());
        self.inverse_own.resize(slots, 0.);
        self.inverse_around.resize(slots, 0.);
        self.logarithms.resize(slots, 0);
        self.inverse_stems.resize(slots, 0.);
    }

    /// Adds a segment after the others.
    fn add<'a>(
        &mut self,
        entry: &'a Entry,
        logarithms: &[i32],
        last: &mut Option<Place<'a>>,
        joints: &mut Vec<usize>,
    ) {
        let segment = &entry.segment;
        let first_passage = self.slot_of.len();
        let passages = segment.passages.len();
        let words = PassageWords::of(segment, &mut self.numbers);
        self.parts.push(Part { first_turn: self.turns.len(), first_passage, passages, words });
        let of_word = words_logarithms(entry, logarithms);
        let speakers = numbers_of(&mut self.speakers, &segment.speakers);
        let threads = numbers_of(&mut self.threads, &segment.threads);
        for (turn, range) in segment.turn_passages() {
            let place = segment.place(turn);
            let continues =
                !self.sessions.is_empty() && last.is_some_and(|last| last.continues(place));
            *last = Some(place);
            if !continues {
                if !self.sessions.is_empty() {
                    self.pad();
                }
                self.sessions.push(self.cues.len()..self.cues.len());
            } else if range.start == 0 {
                joints.push(first_passage);
            }
            let start = self.cues.len();
            for passage in range {
                self.add_passage(segment, passage, &of_word);
            }
            if let Some(session) = self.sessions.last_mut() {
                session.end = self.cues.len();
            }
            self.languages |= 1 << turn.language.number();
            self.has_assistant |= turn.role == Role::Assistant;
            let number = |numbers: &[u32], of: u32| {
                let number = of.checked_sub(1).and_then(|of| numbers.get(of as usize));
                number.copied().unwrap_or_default()
            };
            self.turn_slots.push(start as u32..self.cues.len() as u32);
            self.turns.push(TurnView {
                seq: turn.seq,
                day: turn.day,
                session: self.sessions.len() as u32 - 1,
                speaker: number(&speakers, turn.speaker),
                thread: number(&threads, turn.thread),
                role: turn.role,
            });
        }
        for piece in segment.pieces.iter() {
            if let Some(has) = self.has_piece.get_mut(usize::from(*piece)) {
                *has = true;
            }
        }
    }

    fn add_passage(&mut self, segment: &Segment, passage: usize, of_word: &[i32]) {
        let slot = self.cues.len();
        let cues = segment.passages.get(passage).map(|row| row.cues).unwrap_or_default();
        let norms = segment.norms.get(passage).copied().unwrap_or_default();
        self.slot_of.push(slot as u32);
        self.cues.push(cues);
        if cues.is_standing() {
            self.standing.push(slot as u32);
        }
        self.inverse_own.push(inverse(norms.own));
        self.inverse_around.push(inverse(norms.around));
        let (mut sum, mut stems) = (0, 0u32);
        for entry in segment.entries(passage) {
            // A repeated stem has a number beyond all words.
            if let Some(logarithm) = of_word.get(*entry as usize) {
                sum += logarithm;
                stems += 1;
            }
        }
        self.logarithms.push(sum);
        self.inverse_stems.push(if stems > 0 { 1. / stems as f32 } else { 0. });
    }

    /// The number of a thread plus one, 0 for none; `None` if no turn is of it.
    pub(super) fn thread(&self, thread: Option<&str>) -> Option<u32> {
        let Some(thread) = thread else { return Some(0) };
        let known = self.threads.iter().position(|other| other.as_str() == thread);
        known.map(|index| index as u32 + 1)
    }

    /// Brings the sums of logarithms of the packs' passages up to the index's frequencies.
    fn count_again(&mut self, index: &Index) {
        let mut old = std::mem::take(&mut self.frequencies);
        self.frequencies.clone_from(&index.frequencies);
        for entry in &index.tail {
            for (word, number) in entry.segment.stems.iter().zip(&entry.stem_numbers) {
                let new = self.frequencies.get(*number as usize).copied().unwrap_or_default();
                // Once for a stem of several segments.
                let Some(old) = old.get_mut(*number as usize).filter(|old| **old != new) else {
                    continue;
                };
                let change = logarithm(new) - logarithm(std::mem::replace(old, new));
                for (entry, part) in index.packs.values().zip(&self.parts) {
                    let stem = entry.segment.find_stem(word.as_str());
                    for passage in
                        stem.map(|stem| entry.segment.stem_passages(stem)).unwrap_or_default()
                    {
                        let slot = self.slot_of.get(part.first_passage + *passage as usize);
                        if let Some(sum) =
                            slot.and_then(|slot| self.logarithms.get_mut(*slot as usize))
                        {
                            *sum += change;
                        }
                    }
                }
            }
        }
    }

    fn logarithm_table(&self) -> Vec<i32> {
        // Few frequencies are common to most stems.
        let common: Vec<i32> = (0..256).map(logarithm).collect();
        let of = |frequency: &u32| {
            common.get(*frequency as usize).copied().unwrap_or_else(|| logarithm(*frequency))
        };
        self.frequencies.iter().map(of).collect()
    }

    /// Measures again the passages beside a joint of two segments within a session.
    fn measure_joints(&mut self, index: &Index, joints: &[usize]) {
        let entries: Vec<&Entry> = index.entries().collect();
        let mut found: Vec<(usize, Norms)> = Vec::new();
        for joint in joints {
            let Some(slot) = self.slot_of.get(*joint).map(|slot| *slot as usize) else { continue };
            let session = self.sessions.partition_point(|session| session.end <= slot);
            let Some(session) = self.sessions.get(session) else { continue };
            // Within a session, slots and passages go in step.
            let passages = joint + session.start - slot..joint + session.end - slot;
            let wanted =
                joint.saturating_sub(REACH).max(passages.start)..passages.end.min(joint + REACH);
            let add_passage = |passage: usize, sum: &mut _| {
                let part = self
                    .parts
                    .partition_point(|part| part.first_passage + part.passages <= passage);
                if let (Some(entry), Some(part)) = (entries.get(part), self.parts.get(part)) {
                    entry.segment.add_passage(passage - part.first_passage, sum);
                }
            };
            norms::measure(wanted, passages, add_passage, |passage, norms| {
                found.push((passage, norms))
            });
        }
        for (passage, norms) in found {
            let slot = self.slot_of.get(passage);
            if let Some(around) = slot.and_then(|slot| self.inverse_around.get_mut(*slot as usize))
            {
                *around = inverse(norms.around);
            }
        }
    }
}

/// The logarithm of the frequency of each word's stem.
fn words_logarithms(entry: &Entry, logarithms: &[i32]) -> Vec<i32> {
    let numbers = &entry.stem_numbers;
    let of_stem = |stem: &u32| {
        numbers.get(*stem as usize).and_then(|number| logarithms.get(*number as usize))
    };
    debug_assert!(entry.segment.words.len() < REPEATED as usize);
    entry.segment.words.iter().map(|stem| of_stem(stem).copied().unwrap_or_default()).collect()
}

fn logarithm(frequency: u32) -> i32 {
    ((frequency as f32 + 0.5).ln() * UNIT) as i32
}

fn inverse(length: f32) -> f32 {
    1. / length.max(1e-9)
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
