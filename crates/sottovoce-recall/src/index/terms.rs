//! The question's words: where they stand, and the evidence that they give to passages and sessions.

use super::{
    segments::Segments,
    speakers::name_words,
    view::{REACH, View, rarity},
};
use crate::{
    question::{Question, QuestionWord},
    secret::Word,
    text::language::Language,
};

/// What is left of a word's evidence with each passage after it, and before it.
const FADE_AFTER: [f32; REACH + 1] = [1., 0.7, 0.49, 0.343, 0.2401, 0.16807];
const FADE_BEFORE: [f32; REACH + 1] = [1., 0.5, 0.25, 0.125, 0.0625, 0.03125];
/// The number of passages of a session in which a word stands, at which it counts half for the topic.
const TOPIC_HALF: f32 = 1.5;

/// A word of the question, with the slots of the passages that hold it, ascending.
pub(super) struct Term<'a> {
    pub word: &'a QuestionWord,
    pub rarity: f32,
    slots: Vec<u32>,
}

impl Term<'_> {
    /// How strongly a passage or its neighbours hold a word.
    pub(super) fn found(&self, slot: usize) -> Option<(String, f32)> {
        let first = slot.saturating_sub(REACH);
        let from = self.slots.partition_point(|other| (*other as usize) < first);
        let around = self.slots.iter().skip(from).map(|other| *other as usize);
        let share = around
            .take_while(|other| *other <= slot + REACH)
            .filter_map(|other| match other.checked_sub(slot) {
                Some(ahead) => FADE_BEFORE.get(ahead),
                None => FADE_AFTER.get(slot - other),
            })
            .copied()
            .fold(0., f32::max);
        (share > 0.).then(|| (self.word.text.as_str().to_owned(), share))
    }
}

/// The question's words without names.
pub(super) fn ranking_words<'a>(question: &'a Question, view: &View) -> Vec<&'a QuestionWord> {
    let names = name_words(view);
    question.words.iter().filter(|word| !names.contains(&word.text)).collect()
}

/// The words with their passages. A word is looked for by its stem in every language that occurs.
pub(super) fn terms<'a>(
    segments: &Segments,
    view: &View,
    question: &Question,
    words: &[&'a QuestionWord],
) -> Vec<Term<'a>> {
    let mut terms: Vec<Term<'a>> = Vec::with_capacity(words.len());
    let mut seen: Vec<Word> = Vec::new();
    for word in words {
        let own = question.language.stem(word.text.as_str());
        if seen.contains(&own) {
            continue;
        }
        let mut stems = vec![own.clone()];
        for language in
            Language::ALL.iter().filter(|language| view.languages & 1 << language.number() != 0)
        {
            let stem = language.stem(word.text.as_str());
            if !stems.contains(&stem) && segments.frequency(stem.as_str()) > 0 {
                stems.push(stem);
            }
        }
        seen.push(own);
        let slots = slots_with(segments, view, &stems);
        let rarity = rarity(view.slot_of.len(), slots.len());
        terms.push(Term { word, rarity, slots });
    }
    terms
}

/// The slots of the passages that hold any of these stems, ascending.
fn slots_with(segments: &Segments, view: &View, stems: &[Word]) -> Vec<u32> {
    let mut slots = Vec::new();
    for (entry, part) in segments.entries().zip(&view.parts) {
        let from = slots.len();
        for stem in stems {
            let number = entry.segment.find_stem(stem.as_str());
            let found = number.map(|stem| entry.segment.stem_passages(stem)).unwrap_or_default();
            slots.extend(
                found
                    .iter()
                    .filter_map(|passage| view.slot_of.get(part.first_passage + *passage as usize)),
            );
        }
        if stems.len() > 1 {
            slots.get_mut(from..).unwrap_or_default().sort_unstable();
        }
    }
    slots.dedup();
    slots
}

/// Adds a word's evidence to the passages that hold it, to their neighbours and to their sessions.
pub(super) fn spread(view: &View, term: &Term<'_>, near: &mut [f32], topic: &mut [f32]) {
    let value = term.rarity * term.word.weight;
    let before = FADE_BEFORE.map(|fade| fade * value);
    let after = FADE_AFTER.map(|fade| fade * value);
    let mut slots = term.slots.iter().map(|slot| *slot as usize).peekable();
    // How far the slots after the last passage that holds the word are done.
    let mut done = 0;
    while let Some(slot) = slots.next() {
        let from = done.max(slot.saturating_sub(REACH));
        let ahead = near.get_mut(from..slot).unwrap_or_default();
        for (near, share) in ahead.iter_mut().rev().zip(before.iter().skip(1)) {
            *near += share;
        }
        let next = slots.peek().copied().unwrap_or(usize::MAX);
        done = next.min(slot + REACH + 1);
        let behind = near.get_mut(slot..done).unwrap_or_default();
        for (at, (near, share)) in (slot..).zip(behind.iter_mut().zip(after)) {
            *near += before.get(next - at).map_or(share, |ahead| share.max(*ahead));
        }
    }
    let mut slots = term.slots.as_slice();
    while let Some(first) = slots.first() {
        let session = view.sessions.partition_point(|session| session.end <= *first as usize);
        let end = view.sessions.get(session).map_or(0, |session| session.end);
        let count = slots.iter().take_while(|slot| (**slot as usize) < end).count().max(1);
        if let Some(topic) = topic.get_mut(session) {
            *topic += value * count as f32 / (count as f32 + TOPIC_HALF);
        }
        slots = slots.get(count..).unwrap_or_default();
    }
}
