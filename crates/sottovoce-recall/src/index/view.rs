//! What is derived from all segments of an index: flat lists over all turns and passages.

use std::ops::Range;

use super::{Entry, Index};
use crate::{
    secret::Word,
    segment::{Norms, Place, REPEATED, norms},
    text::cues::Cues,
    turn::Role,
};

/// Flat lists over all turns and passages of an index, in order.
#[derive(Default)]
pub(super) struct View {
    pub turns: Vec<TurnView>,
    /// The session of each passage.
    pub session_of: Vec<u32>,
    /// The passages of each session.
    pub sessions: Vec<Range<usize>>,
    /// One over the length of each passage's vector, and of the vector with its neighbours'.
    pub inverse_own: Vec<f32>,
    pub inverse_around: Vec<f32>,
    /// The mean rarity of each passage's words.
    pub rarity: Vec<f32>,
    pub cues: Vec<Cues>,
    /// The number of each segment's first passage and first turn.
    pub starts: Vec<(usize, usize)>,
    pub speakers: Vec<Word>,
    /// Pieces that occur, ascending.
    pub pieces: Vec<u16>,
    pub has_assistant: bool,
    /// A bit for each language that occurs.
    pub languages: u8,
}

/// A turn among all turns.
pub(super) struct TurnView {
    pub seq: u64,
    pub day: i32,
    /// The number of its last passage plus one.
    pub passages_end: usize,
    /// The number of its speaker plus one.
    pub speaker: usize,
    pub role: Role,
}

impl View {
    pub(super) fn new(index: &Index) -> Self {
        let mut view = Self::default();
        let rarities = index.rarities();
        let mut has_piece = vec![false; 1 << 16];
        let mut last: Option<Place<'_>> = None;
        let mut joints = Vec::new();
        for entry in index.entries() {
            let segment = &entry.segment;
            let start = view.cues.len();
            view.starts.push((start, view.turns.len()));
            for (turn, passages) in segment.turn_passages() {
                let place = segment.place(turn);
                if view.sessions.is_empty() || last.is_some_and(|last| !last.continues(place)) {
                    view.sessions.push(start + passages.start..start + passages.start);
                } else if passages.start == 0 {
                    joints.push(start);
                }
                last = Some(place);
                if let Some(session) = view.sessions.last_mut() {
                    session.end = start + passages.end;
                }
                view.session_of.resize(start + passages.end, view.sessions.len() as u32 - 1);
                let speaker = segment.speaker(turn).map_or(0, |name| view.number_of(name));
                view.languages |= 1 << turn.language.number();
                view.has_assistant |= turn.role == Role::Assistant;
                view.turns.push(TurnView {
                    seq: turn.seq,
                    day: turn.day,
                    passages_end: start + passages.end,
                    speaker,
                    role: turn.role,
                });
            }
            view.cues.extend(segment.passages.iter().map(|passage| passage.cues));
            view.inverse_own.extend(segment.norms.iter().map(|norms| inverse(norms.own)));
            view.inverse_around.extend(segment.norms.iter().map(|norms| inverse(norms.around)));
            view.add_rarity(entry, &rarities);
            for piece in segment.pieces.iter() {
                if let Some(has) = has_piece.get_mut(usize::from(*piece)) {
                    *has = true;
                }
            }
        }
        view.pieces =
            (0..=u16::MAX).zip(has_piece).filter_map(|(piece, has)| has.then_some(piece)).collect();
        view.measure_joints(index, &joints);
        view
    }

    fn number_of(&mut self, name: &str) -> usize {
        let known = self.speakers.iter().position(|other| other.as_str() == name);
        known.map_or_else(
            || {
                self.speakers.push(name.into());
                self.speakers.len()
            },
            |known| known + 1,
        )
    }

    /// The mean rarity of each passage's stems.
    fn add_rarity(&mut self, entry: &Entry, rarities: &[f32]) {
        let segment = &entry.segment;
        let of_stem = |stem: &u32| {
            entry.stem_numbers.get(*stem as usize).and_then(|n| rarities.get(*n as usize))
        };
        let of_word: Vec<f32> =
            segment.words.iter().map(|stem| of_stem(stem).copied().unwrap_or_default()).collect();
        let mut entries = segment.entries.iter();
        let mut start = 0;
        for passage in &segment.passages {
            let count = (passage.entries_end - start) as usize;
            start = passage.entries_end;
            let (mut sum, mut stems) = (0., 0u32);
            for entry in entries.by_ref().take(count).filter(|entry| **entry & REPEATED == 0) {
                sum += of_word.get(*entry as usize).copied().unwrap_or_default();
                stems += 1;
            }
            self.rarity.push(sum / stems.max(1) as f32);
        }
    }

    /// Measures again the passages beside a joint of two segments within a session.
    fn measure_joints(&mut self, index: &Index, joints: &[usize]) {
        let entries: Vec<&Entry> = index.entries().collect();
        let starts = &self.starts;
        let add_passage = |passage: usize, sum: &mut _| {
            let at = starts.partition_point(|(start, _)| *start <= passage);
            // Empty segments start where the next one does; the last of them holds the passage.
            if let Some((entry, (start, _))) =
                at.checked_sub(1).and_then(|at| entries.get(at).zip(starts.get(at)))
            {
                entry.segment.add_passage(passage - start, sum);
            }
        };
        let mut found: Vec<(usize, Norms)> = Vec::new();
        for joint in joints {
            let session = self
                .session_of
                .get(*joint)
                .and_then(|session| self.sessions.get(*session as usize));
            let Some(session) = session.cloned() else { continue };
            let first = joint.saturating_sub(norms::REACH).max(session.start);
            let wanted = first..session.end.min(joint + norms::REACH);
            norms::measure(wanted, session, add_passage, |passage, norms| {
                found.push((passage, norms))
            });
        }
        for (passage, norms) in found {
            if let Some(around) = self.inverse_around.get_mut(passage) {
                *around = inverse(norms.around);
            }
        }
    }
}

fn inverse(length: f32) -> f32 {
    1. / length.max(1e-9)
}

impl Index {
    /// The rarity of each stem: the logarithm of how many passages there are for one that holds it.
    fn rarities(&self) -> Vec<f32> {
        let passages = self.passages();
        // Few frequencies are common to most stems.
        let common: Vec<f32> = (0..256).map(|frequency| rarity(passages, frequency)).collect();
        let of = |frequency: &u32| {
            common.get(*frequency as usize).copied().unwrap_or_else(|| rarity(passages, *frequency))
        };
        self.frequencies.iter().map(of).collect()
    }

    pub(super) fn passages(&self) -> usize {
        self.entries().map(|entry| entry.segment.passages.len()).sum()
    }
}

/// The rarity of a stem that `frequency` of `passages` hold.
pub(super) fn rarity(passages: usize, frequency: u32) -> f32 {
    let (passages, frequency) = (passages as f64, f64::from(frequency));
    (1. + (passages - frequency + 0.5) / (frequency + 0.5)).ln() as f32
}
