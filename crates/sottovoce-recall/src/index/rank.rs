//! Ranking: eleven features of each passage, and the best passage of each turn.

use zeroize::Zeroize;

use std::ops::Range;

use super::{
    Index,
    sense::sense,
    speakers::Whose,
    terms::{Term, ranking_words, spread, terms},
    view::{TurnView, View},
    weights::Weights,
};
use crate::{
    hit::{Hit, Why},
    question::Question,
    text::cues::Cues,
    time,
};

/// The rarity of all words of a question below which it is weak evidence.
const STRONG: f32 = 10.;

/// Memory that one question leaves for the next. Lists are by slot, `topic` by session, `products` by word.
#[derive(Default)]
pub(super) struct Scratch {
    pub near: Vec<f32>,
    pub topic: Vec<f32>,
    pub sense: Vec<f32>,
    pub around: Vec<f32>,
    pub scores: Vec<f32>,
    pub products: Option<Box<[i32; 1 << 16]>>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for list in
            [&mut self.near, &mut self.topic, &mut self.sense, &mut self.around, &mut self.scores]
        {
            list.zeroize();
        }
    }
}

/// Ranks all turns of an index.
pub(super) fn rank(
    index: &Index,
    view: &View,
    question: &Question,
    visible: &impl Fn(&TurnView) -> bool,
    n: usize,
    scratch: &mut Scratch,
) -> Vec<Hit> {
    let words = ranking_words(question, view);
    let terms = terms(index, view, question, &words);
    let mass: f32 = terms.iter().map(|term| term.rarity * term.word.weight).sum();
    renew(&mut scratch.near, view.cues.len());
    renew(&mut scratch.topic, view.sessions.len());
    for term in &terms {
        spread(view, term, &mut scratch.near, &mut scratch.topic);
    }
    sense(index, view, question, &words, scratch);
    let strength = (mass / STRONG).min(1.);
    let ranker = Ranker {
        view,
        weights: &index.weights,
        question,
        strength,
        words: strength / mass.max(1e-9),
        whose: Whose::asked(question, view),
    };
    ranker.score_passages(scratch);
    let hits = ranker.best_turns(scratch, visible, n);
    hits.iter()
        .filter_map(|(score, turn)| ranker.hit(index, scratch, &terms, *score, *turn))
        .collect()
}

struct Ranker<'a> {
    view: &'a View,
    weights: &'a Weights,
    question: &'a Question,
    /// How far the meaning of the question counts.
    strength: f32,
    /// How far each bit of rarity of its words counts.
    words: f32,
    whose: Whose,
}

impl Ranker<'_> {
    /// Scores every passage, without what its turn adds.
    fn score_passages(&self, scratch: &mut Scratch) {
        let view = self.view;
        let near = self.weights.near * self.words;
        let (sense, around) =
            (self.weights.sense * self.strength, self.weights.sense_around * self.strength);
        scratch.scores.clear();
        let words = scratch.near.iter().zip(&view.rarity);
        let own = scratch.sense.iter().zip(&view.inverse_own);
        let both = scratch.around.iter().zip(&view.inverse_around);
        scratch.scores.extend(words.zip(own.zip(both)).map(|((words, rarity), (own, both))| {
            near * words
                + self.weights.rarity * rarity
                + sense * own.0 * own.1
                + around * both.0 * both.1
        }));
        let mut of_cues = [0f32; 256];
        for (cues, value) in (0..=u8::MAX).map(Cues).zip(&mut of_cues) {
            *value = self.weights.me * number(cues.is_me())
                + self.weights.time_words * f32::from(cues.times())
                + self.weights.answer * self.answers(cues);
        }
        for (score, cues) in scratch.scores.iter_mut().zip(&view.cues) {
            *score += of_cues.get(usize::from(cues.0)).copied().unwrap_or_default();
        }
        let topic_weight = self.weights.topic * self.words;
        for (session, topic) in
            view.sessions.iter().zip(&scratch.topic).filter(|(_, topic)| **topic > 0.)
        {
            for score in scratch.scores.get_mut(session.clone()).unwrap_or_default() {
                *score += topic_weight * topic;
            }
        }
        for slot in view.standing.iter().map(|slot| *slot as usize) {
            let standing = self.standing(scratch, slot);
            if let Some(score) = scratch.scores.get_mut(slot) {
                *score += standing;
            }
        }
    }

    /// The best `n` visible turns with their scores, best first. Equal scores keep the order of the conversation.
    fn best_turns(
        &self,
        scratch: &Scratch,
        visible: &impl Fn(&TurnView) -> bool,
        n: usize,
    ) -> Vec<(f32, usize)> {
        let mut best = BestTurns {
            turns: Vec::new(),
            wanted: n.min(self.view.turns.len()),
            least: f32::NEG_INFINITY,
        };
        let dates = !self.question.spans.is_empty();
        let is_plain = !dates && self.whose == Whose::Anyones;
        for (number, slots) in self.view.turn_slots.iter().enumerate() {
            let passages =
                scratch.scores.get(slots.start as usize..slots.end as usize).unwrap_or_default();
            let mut score = f32::NEG_INFINITY;
            for passage in passages {
                score = if *passage > score { *passage } else { score };
            }
            if !is_plain && let Some(turn) = self.view.turns.get(number) {
                let date = if dates { time::nearness(turn.day, &self.question.spans) } else { 0. };
                score += self.weights.speaker * self.whose.of(turn) + self.weights.date * date;
            }
            if score > best.least && self.view.turns.get(number).is_some_and(visible) {
                best.add(score, number);
            }
        }
        best.finish()
    }

    /// What a standing wish adds: more, the better the passage fits the question.
    fn standing(&self, scratch: &Scratch, slot: usize) -> f32 {
        let at = |list: &[f32]| list.get(slot).copied().unwrap_or_default();
        let fits = if cfg!(feature = "vectors") {
            at(&scratch.sense) * at(&self.view.inverse_own) * self.strength
        } else {
            at(&scratch.near) * self.words
        };
        self.weights.standing * fits
    }

    /// How many kinds of answer the passage holds that are asked for.
    fn answers(&self, cues: Cues) -> f32 {
        let question = self.question;
        number(question.asks_when && cues.times() > 0)
            + number(question.asks_number && cues.has_number())
            + number(question.asks_name && cues.has_name())
    }

    fn hit(
        &self,
        index: &Index,
        scratch: &Scratch,
        terms: &[Term<'_>],
        score: f32,
        turn: usize,
    ) -> Option<Hit> {
        let view = self.view;
        let part = view.parts.partition_point(|part| part.first_turn <= turn).checked_sub(1)?;
        let segment = &index.entries().nth(part)?.segment;
        let part = view.parts.get(part)?;
        let row = segment.turns.get(turn - part.first_turn)?;
        let seen = view.turns.get(turn)?;
        let slot = best_slot(view.turn_slots.get(turn)?, &scratch.scores)?;
        let passage = view.slot_of.binary_search(&(slot as u32)).ok()?;
        let found = segment.passages.get(passage.checked_sub(part.first_passage)?)?;
        let at = |list: &[f32]| list.get(slot).copied().unwrap_or_default();
        let topic = scratch.topic.get(seen.session as usize).copied().unwrap_or_default();
        let standing = if found.cues.is_standing() { self.standing(scratch, slot) } else { 0. };
        Some(Hit {
            seq: row.seq,
            score,
            passage: found.start as usize..found.end as usize,
            at: row.at,
            day: row.day,
            session: seen.session,
            length: row.length,
            why: Why {
                words: terms.iter().filter_map(|term| term.found(slot)).collect(),
                near: self.weights.near * self.words * at(&scratch.near),
                sense: self.weights.sense
                    * self.strength
                    * at(&scratch.sense)
                    * at(&view.inverse_own),
                sense_around: self.weights.sense_around
                    * self.strength
                    * at(&scratch.around)
                    * at(&view.inverse_around),
                topic: self.weights.topic * self.words * topic,
                speaker: self.weights.speaker * self.whose.of(seen),
                date: self.weights.date * time::nearness(row.day, &self.question.spans),
                me: self.weights.me * number(found.cues.is_me()),
                answer: self.weights.answer * self.answers(found.cues),
                time_words: self.weights.time_words * f32::from(found.cues.times()),
                rarity: self.weights.rarity * at(&view.rarity),
                standing,
            },
        })
    }
}

/// The slot of a turn's best passage, the first of equals.
fn best_slot(slots: &Range<u32>, scores: &[f32]) -> Option<usize> {
    let range = slots.start as usize..slots.end as usize;
    let scores = range.clone().zip(scores.get(range)?);
    scores
        .fold(None, |best: Option<(usize, f32)>, (slot, score)| match best {
            Some((_, best_score)) if best_score >= *score => best,
            _ => Some((slot, *score)),
        })
        .map(|(slot, _)| slot)
}

#[inline]
fn number(is: bool) -> f32 {
    f32::from(u8::from(is))
}

/// The best turns so far.
struct BestTurns {
    turns: Vec<(f32, usize)>,
    wanted: usize,
    /// A turn must score more than this to be one of the best.
    least: f32,
}

impl BestTurns {
    fn add(&mut self, score: f32, turn: usize) {
        self.turns.push((score, turn));
        if self.turns.len() >= self.wanted.saturating_mul(2).saturating_add(64) {
            self.shorten();
        }
    }

    fn shorten(&mut self) {
        if let Some(last) = self.wanted.checked_sub(1).filter(|last| *last < self.turns.len()) {
            let (_, least, _) = self.turns.select_nth_unstable_by(last, Self::order);
            self.least = least.0;
        }
        self.turns.truncate(self.wanted);
    }

    fn finish(mut self) -> Vec<(f32, usize)> {
        self.shorten();
        self.turns.sort_unstable_by(Self::order);
        self.turns
    }

    fn order(a: &(f32, usize), b: &(f32, usize)) -> std::cmp::Ordering {
        b.0.total_cmp(&a.0).then(a.1.cmp(&b.1))
    }
}

pub(super) fn renew(list: &mut Vec<f32>, length: usize) {
    list.clear();
    list.resize(length, 0.);
}
