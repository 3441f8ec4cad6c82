//! Ranking: the features of each passage, and the best passage of each turn.

use std::{ops::Range, panic::resume_unwind, thread};

use zeroize::Zeroize;

use super::{
    segments::Segments,
    speakers::Whose,
    terms::{Term, ranking_words, spread, terms},
    view::{TurnView, View},
    weights::Weights,
};
use crate::{
    hit::{Hit, Why},
    meaning::{Asked, Meanings},
    question::Question,
    time,
    turn::Role,
};

/// How likely a passage tells something whose meaning is not known yet.
const UNKNOWN_TELLS: f32 = 0.5;
/// The rarity of all words of a question below which it is weak evidence.
const STRONG: f32 = 10.;

/// Slots from which on several threads compare meanings: a thread starts in the time of a thousand comparisons.
const SHARED: usize = 16_384;

/// Memory that one question leaves for the next. Lists are by slot, `topic` by session.
#[derive(Default)]
pub(super) struct Scratch {
    near: Vec<f32>,
    topic: Vec<f32>,
    sense: Vec<f32>,
    tells: Vec<f32>,
    scores: Vec<f32>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for list in
            [&mut self.near, &mut self.topic, &mut self.sense, &mut self.tells, &mut self.scores]
        {
            list.zeroize();
        }
    }
}

/// Ranks all turns of an index.
pub(super) fn rank(
    segments: &Segments,
    weights: &Weights,
    view: &View,
    question: &Question,
    visible: &impl Fn(&TurnView) -> bool,
    n: usize,
    scratch: &mut Scratch,
) -> Vec<Hit> {
    let words = ranking_words(question, view);
    let terms = terms(segments, view, question, &words);
    let mass: f32 = terms.iter().map(|term| term.rarity * term.word.weight).sum();
    renew(&mut scratch.near, view.slots);
    renew(&mut scratch.topic, view.sessions.len());
    for term in &terms {
        spread(view, term, &mut scratch.near, &mut scratch.topic);
    }
    let is_understood = sense(segments, view, question, scratch);
    let of_words = Weights::of_words();
    let ranker = Ranker {
        view,
        weights: if is_understood { weights } else { &of_words },
        question,
        words: (mass / STRONG).min(1.) / mass.max(1e-9),
        whose: Whose::asked(question, view),
    };
    ranker.score_passages(scratch);
    let hits = ranker.best_turns(scratch, visible, n);
    hits.iter()
        .filter_map(|(score, turn)| ranker.hit(segments, scratch, &terms, *score, *turn))
        .collect()
}

/// How well each passage fits what the question means. One without a meaning yet fits as others do in the mean, so that
/// its words decide. Returns whether any has one.
fn sense(segments: &Segments, view: &View, question: &Question, scratch: &mut Scratch) -> bool {
    renew(&mut scratch.sense, view.slots);
    renew(&mut scratch.tells, view.slots);
    let Some(asked) = &question.meaning else { return false };
    let meant = segments.entries().map(|entry| &entry.segment);
    let parts: Vec<(&Meanings, &[u32])> = meant
        .zip(&view.parts)
        .filter_map(|(segment, part)| {
            let end = part.first_passage + segment.passages.len();
            Some((&segment.meanings, view.slot_of.get(part.first_passage..end)?))
        })
        .collect();
    let threads = match view.slots {
        0..SHARED => 1,
        _ => thread::available_parallelism().map_or(1, usize::from),
    };
    let mut rest = Fits { first: 0, sense: &mut scratch.sense, tells: &mut scratch.tells };
    let fitting: Vec<Fitting> = thread::scope(|scope| {
        let each = parts.len().div_ceil(threads).max(1);
        let work = parts.chunks(each).filter_map(|parts| {
            let last = parts.iter().rev().find_map(|(_, slots)| slots.last())?;
            let mut fits = rest.take_until(*last as usize + 1)?;
            let fill =
                move |(meanings, slots): &(&Meanings, &[u32])| fits.fill(meanings, slots, asked);
            Some(|| parts.iter().map(fill).collect::<Vec<_>>())
        });
        if threads == 1 {
            return work.flat_map(|work| work()).collect();
        }
        let working: Vec<_> = work.map(|work| scope.spawn(work)).collect();
        let done =
            working.into_iter().map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic)));
        done.flatten().collect()
    });
    // By segment, so that the sum is the same with any number of threads.
    let (sum, known) =
        fitting.iter().fold((0., 0.), |(sum, known), part| (sum + part.sum, known + part.known));
    for slot in fitting.iter().flat_map(|part| &part.unknown) {
        if let (Some(sense), Some(told)) =
            (scratch.sense.get_mut(*slot), scratch.tells.get_mut(*slot))
        {
            (*sense, *told) = (sum / f32::max(known, 1.), UNKNOWN_TELLS);
        }
    }
    known > 0.
}

/// How well the passages from a slot on fit, and how likely they tell something.
struct Fits<'a> {
    first: usize,
    sense: &'a mut [f32],
    tells: &'a mut [f32],
}

/// What the passages of a segment fit in sum, how many have a meaning, and the slots of the others.
#[derive(Default)]
struct Fitting {
    sum: f32,
    known: f32,
    unknown: Vec<usize>,
}

impl Fits<'_> {
    /// Takes what is before a slot.
    fn take_until(&mut self, slot: usize) -> Option<Self> {
        let count = slot.checked_sub(self.first)?;
        let sense = self.sense.split_off_mut(..count)?;
        let tells = self.tells.split_off_mut(..count)?;
        let first = std::mem::replace(&mut self.first, slot);
        Some(Self { first, sense, tells })
    }

    fn fill(&mut self, meanings: &Meanings, slots: &[u32], asked: &Asked) -> Fitting {
        let mut fitting = Fitting::default();
        let fits = meanings.fits(asked).chain(std::iter::repeat(None));
        for (fits, slot) in fits.zip(slots.iter().map(|slot| *slot as usize)) {
            let Some((tells, fits)) = fits else {
                fitting.unknown.push(slot);
                continue;
            };
            (fitting.sum, fitting.known) = (fitting.sum + fits, fitting.known + 1.);
            let at = slot - self.first;
            if let (Some(sense), Some(told)) = (self.sense.get_mut(at), self.tells.get_mut(at)) {
                (*sense, *told) = (fits, tells);
            }
        }
        fitting
    }
}

/// The better of the values beside a slot. Between two sessions lie empty slots.
fn beside(values: &[f32], slot: usize) -> f32 {
    let at = |slot: Option<usize>| slot.and_then(|slot| values.get(slot)).copied();
    at(slot.checked_sub(1)).unwrap_or_default().max(at(slot.checked_add(1)).unwrap_or_default())
}

struct Ranker<'a> {
    view: &'a View,
    weights: &'a Weights,
    question: &'a Question,
    /// How far each bit of rarity of its words counts.
    words: f32,
    whose: Whose,
}

impl Ranker<'_> {
    /// Scores every passage, without what its turn adds.
    fn score_passages(&self, scratch: &mut Scratch) {
        let near = self.weights.near * self.words;
        scratch.scores.clear();
        let sense = &scratch.sense;
        let slots = scratch.near.iter().zip(sense).zip(&scratch.tells).enumerate();
        scratch.scores.extend(slots.map(|(slot, ((words, own), tells))| {
            near * words
                + self.weights.sense * own
                + self.weights.around * beside(sense, slot)
                + self.weights.tells * tells
        }));
        let topic_weight = self.weights.topic * self.words;
        for (session, topic) in
            self.view.sessions.iter().zip(&scratch.topic).filter(|(_, topic)| **topic > 0.)
        {
            for score in scratch.scores.get_mut(session.clone()).unwrap_or_default() {
                *score += topic_weight * topic;
            }
        }
    }

    /// The best `n` visible turns with their scores, best first. Of equal scores the newer one comes first.
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
        for (number, (slots, turn)) in self.view.turn_slots.iter().zip(&self.view.turns).enumerate()
        {
            let passages =
                scratch.scores.get(slots.start as usize..slots.end as usize).unwrap_or_default();
            let mut score = f32::NEG_INFINITY;
            for passage in passages {
                score = if *passage > score { *passage } else { score };
            }
            let date = if dates { time::nearness(turn.day, &self.question.spans) } else { 0. };
            score += self.weights.speaker * self.whose.of(turn)
                + self.weights.person * person(turn)
                + self.weights.date * date;
            if score > best.least && self.question.may_mean(turn.day) && visible(turn) {
                best.add(score, number);
            }
        }
        best.finish()
    }

    fn hit(
        &self,
        segments: &Segments,
        scratch: &Scratch,
        terms: &[Term<'_>],
        score: f32,
        turn: usize,
    ) -> Option<Hit> {
        let view = self.view;
        let part = view.parts.partition_point(|part| part.first_turn <= turn).checked_sub(1)?;
        let segment = &segments.entries().nth(part)?.segment;
        let part = view.parts.get(part)?;
        let turn_in = turn - part.first_turn;
        let row = segment.turns.get(turn_in)?;
        let seen = view.turns.get(turn)?;
        let slot = best_slot(view.turn_slots.get(turn)?, &scratch.scores)?;
        let passage = view.slot_of.binary_search(&(slot as u32)).ok()?;
        let passage = passage.checked_sub(part.first_passage)?;
        let found = segment.passages.get(passage)?;
        let is_understood = segment.meanings.get(passage).is_some();
        let before = turn_in.checked_sub(1).and_then(|before| segment.turns.get(before));
        let passages = before.map_or(0, |before| before.passages_end)..row.passages_end;
        let orders = passages.map(|passage| passage as usize).filter(|passage| {
            segment.meanings.get(*passage).is_some_and(|([_, tells], _)| tells.is_sign_negative())
        });
        let orders = orders.filter_map(|passage| segment.passages.get(passage));
        let orders = orders.map(|order| order.start as usize..order.end as usize);
        let at = |list: &[f32]| list.get(slot).copied().unwrap_or_default();
        let topic = scratch.topic.get(seen.session as usize).copied().unwrap_or_default();
        Some(Hit {
            seq: row.seq,
            score,
            passage: found.start as usize..found.end as usize,
            at: row.at,
            day: row.day,
            session: seen.session,
            length: row.length,
            orders: is_understood.then(|| orders.collect()),
            why: Why {
                words: terms.iter().filter_map(|term| term.found(slot)).collect(),
                alike: if is_understood { at(&scratch.sense) } else { 0. },
                near: self.weights.near * self.words * at(&scratch.near),
                sense: self.weights.sense * at(&scratch.sense),
                around: self.weights.around * beside(&scratch.sense, slot),
                tells: self.weights.tells * at(&scratch.tells),
                topic: self.weights.topic * self.words * topic,
                speaker: self.weights.speaker * self.whose.of(seen),
                person: self.weights.person * person(seen),
                date: self.weights.date * time::nearness(row.day, &self.question.spans),
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

/// 1 for what a person said or brought, 0 for what the assistant said.
fn person(turn: &TurnView) -> f32 {
    f32::from(u8::from(turn.role != Role::Assistant))
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
        b.0.total_cmp(&a.0).then(b.1.cmp(&a.1))
    }
}

fn renew(list: &mut Vec<f32>, length: usize) {
    list.clear();
    list.resize(length, 0.);
}
