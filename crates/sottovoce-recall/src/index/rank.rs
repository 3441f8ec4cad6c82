//! Ranking: eleven features of each passage, and the best passage of each turn.

use std::cmp::Ordering;

use zeroize::Zeroize;

use super::{
    Entry, Index,
    speakers::{Whose, name_words},
    view::{View, rarity},
};
use crate::{
    hit::{Hit, Why},
    question::{Question, QuestionWord},
    segment::{REPEATED, norms},
    text::{cues::Cues, language::Language},
    time,
    vectors::{self, DIMENSIONS, Vector, length},
};

/// What each feature counts. Fitted on conversations with known answers.
struct Weights {
    near: f32,
    sense: f32,
    sense_around: f32,
    topic: f32,
    speaker: f32,
    date: f32,
    me: f32,
    answer: f32,
    time_words: f32,
    rarity: f32,
    standing: f32,
}

#[cfg(feature = "vectors")]
const WEIGHTS: Weights = Weights {
    near: 4.92,
    sense: 1.81,
    sense_around: 5.8,
    topic: 2.28,
    speaker: 1.53,
    date: 5.21,
    me: 0.82,
    answer: 1.23,
    time_words: 0.25,
    rarity: 0.46,
    standing: 2.8,
};

#[cfg(not(feature = "vectors"))]
const WEIGHTS: Weights = Weights {
    near: 7.8,
    sense: 0.,
    sense_around: 0.,
    topic: 3.58,
    speaker: 1.55,
    date: 5.23,
    me: 0.81,
    answer: 1.22,
    time_words: 0.22,
    rarity: 0.35,
    standing: 1.46,
};

/// What is left of a word's evidence with each passage after it, and before it.
const FADE_AFTER: [f32; norms::REACH + 1] = [1., 0.7, 0.49, 0.343, 0.2401, 0.16807];
const FADE_BEFORE: [f32; norms::REACH + 1] = [1., 0.5, 0.25, 0.125, 0.0625, 0.03125];
/// Passages of a session in which a word counts half for the topic... of 1.5 in all.
const TOPIC_HALF: f32 = 1.5;
/// The rarity of all words of a question below which it is weak evidence.
const STRONG: f32 = 10.;

/// Memory that one question leaves for the next.
#[derive(Default)]
pub(super) struct Scratch {
    near: Vec<f32>,
    topic: Vec<f32>,
    dots: Vec<f32>,
    around: Vec<f32>,
    products: Vec<f32>,
    of_word: Vec<f32>,
    turns: Vec<(f32, u32, u32)>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for list in
            [&mut self.near, &mut self.topic, &mut self.dots, &mut self.around, &mut self.of_word]
        {
            list.zeroize();
        }
    }
}

/// A word of the question, with the passages that hold it.
struct Term<'a> {
    word: &'a QuestionWord,
    rarity: f32,
    passages: Vec<u32>,
}

/// Ranks all turns of an index.
pub(super) fn rank(
    index: &Index,
    view: &View,
    question: &Question,
    visible: &impl Fn(u64) -> bool,
    n: usize,
    scratch: &mut Scratch,
) -> Vec<Hit> {
    let words = ranking_words(question, view);
    let terms = terms(index, view, question, &words);
    let mass: f32 = terms.iter().map(|term| term.rarity * term.word.weight).sum();
    let passages = view.cues.len();
    renew(&mut scratch.near, passages);
    renew(&mut scratch.topic, view.sessions.len());
    for term in &terms {
        spread(view, term, &mut scratch.near, &mut scratch.topic);
    }
    sense(index, view, question, &words, scratch);
    let ranker = Ranker {
        view,
        question,
        scratch,
        strength: (mass / STRONG).min(1.),
        inverse_mass: 1. / mass.max(1e-9),
        whose: Whose::asked(question, view),
    };
    let mut turns = ranker.best_passages();
    let hits = choose(&mut turns, view, visible, n);
    let hits = hits.iter().filter_map(|(score, turn, passage)| {
        ranker.hit(index, &terms, *score, *turn as usize, *passage as usize)
    });
    let hits = hits.collect();
    scratch.turns = turns;
    hits
}

/// The question's words without names and, if others are left, without asking words.
fn ranking_words<'a>(question: &'a Question, view: &View) -> Vec<&'a QuestionWord> {
    let names = name_words(view);
    let all = question.words.iter().filter(|word| !names.contains(&word.text));
    let telling: Vec<&QuestionWord> = all.clone().filter(|word| !word.is_asking).collect();
    if telling.is_empty() { all.collect() } else { telling }
}

/// The words with their passages. A word is looked for by its stem in every language that occurs.
fn terms<'a>(
    index: &Index,
    view: &View,
    question: &Question,
    words: &[&'a QuestionWord],
) -> Vec<Term<'a>> {
    let mut terms: Vec<Term<'a>> = Vec::with_capacity(words.len());
    let mut seen: Vec<String> = Vec::new();
    for word in words {
        let own = question.language.stem(&word.text).into_owned();
        if seen.contains(&own) {
            continue;
        }
        let mut stems = vec![own.clone()];
        for language in
            Language::ALL.iter().filter(|language| view.languages & 1 << language.number() != 0)
        {
            let stem = language.stem(&word.text).into_owned();
            if !stems.contains(&stem) && index.frequency(&stem) > 0 {
                stems.push(stem);
            }
        }
        seen.push(own);
        let passages = passages_with(index, view, &stems);
        let rarity = rarity(view.cues.len(), passages.len() as u32);
        terms.push(Term { word, rarity, passages });
    }
    terms
}

/// The passages that hold any of these stems, ascending.
fn passages_with(index: &Index, view: &View, stems: &[String]) -> Vec<u32> {
    let mut passages = Vec::new();
    for (entry, (start, _)) in index.entries().zip(&view.starts) {
        let from = passages.len();
        for stem in stems {
            let number = entry.segment.find_stem(stem);
            let found = number.map(|stem| entry.segment.stem_passages(stem)).unwrap_or_default();
            passages.extend(found.iter().map(|passage| passage + *start as u32));
        }
        if stems.len() > 1 {
            passages.get_mut(from..).unwrap_or_default().sort_unstable();
        }
    }
    passages.dedup();
    passages
}

/// Adds a word's evidence to the passages that hold it, to their neighbours and to their sessions.
fn spread(view: &View, term: &Term<'_>, near: &mut [f32], topic: &mut [f32]) {
    let value = term.rarity * term.word.weight;
    let session = |passage: usize| {
        let number = view.session_of.get(passage).map_or(0, |session| *session as usize);
        (number, view.sessions.get(number).cloned().unwrap_or_default())
    };
    let mut add = |passage: usize, share: f32| {
        if let Some(near) = near.get_mut(passage) {
            *near += value * share;
        }
    };
    let fade = |fades: &[f32], distance: usize| fades.get(distance).copied().unwrap_or_default();
    let mut passages = term.passages.iter().map(|passage| *passage as usize).peekable();
    // How far the passages after the last one that holds the word are done.
    let mut done = 0;
    let mut count = 0f32;
    while let Some(passage) = passages.next() {
        let (number, bounds) = session(passage);
        for before in done.max(bounds.start).max(passage.saturating_sub(norms::REACH))..passage {
            add(before, fade(&FADE_BEFORE, passage - before));
        }
        add(passage, 1.);
        count += 1.;
        let next = passages.peek().copied().filter(|next| bounds.contains(next));
        done = bounds.end.min(passage + norms::REACH + 1).min(next.unwrap_or(usize::MAX));
        for after in passage + 1..done {
            let ahead = next.map_or(0., |next| fade(&FADE_BEFORE, next - after));
            add(after, fade(&FADE_AFTER, after - passage).max(ahead));
        }
        if next.is_none() {
            if let Some(topic) = topic.get_mut(number) {
                *topic += value * count / (count + TOPIC_HALF);
            }
            count = 0.;
        }
    }
}

/// How much of the question's meaning each passage has, alone and with its neighbours.
fn sense(
    index: &Index,
    view: &View,
    question: &Question,
    words: &[&QuestionWord],
    scratch: &mut Scratch,
) {
    let passages = view.cues.len();
    renew(&mut scratch.dots, passages);
    renew(&mut scratch.around, passages);
    let mut asked: Vector = [0.; DIMENSIONS];
    if question.language == Language::English {
        let mut pieces = Vec::new();
        for word in words {
            pieces.clear();
            vectors::pieces(&word.text, &mut pieces);
            vectors::add_word(&mut asked, &pieces);
        }
    }
    let norm = length(&asked);
    if norm < 1e-6 {
        return;
    }
    asked.iter_mut().for_each(|value| *value /= norm);
    vectors::products(&asked, view.pieces.iter().copied(), &mut scratch.products);
    for (entry, (start, _)) in index.entries().zip(&view.starts) {
        let dots = scratch.dots.get_mut(*start..).unwrap_or_default();
        sense_of(entry, &scratch.products, &mut scratch.of_word, dots);
    }
    for session in &view.sessions {
        let dots = scratch.dots.get(session.clone()).unwrap_or_default();
        let around = scratch.around.get_mut(session.clone()).unwrap_or_default();
        around.copy_from_slice(dots);
        for distance in 1..=norms::REACH.min(dots.len().saturating_sub(1)) {
            let fade = norms::FADE.powi(distance as i32);
            for (around, dot) in around.iter_mut().skip(distance).zip(dots) {
                *around += fade * dot;
            }
            for (around, dot) in around.iter_mut().zip(dots.iter().skip(distance)) {
                *around += fade * dot;
            }
        }
    }
    for ((dot, around), (own, both)) in scratch
        .dots
        .iter_mut()
        .zip(&mut scratch.around)
        .zip(view.inverse_own.iter().zip(&view.inverse_around))
    {
        *dot *= own;
        *around *= both;
    }
}

/// The dot product of the question's meaning with each passage of a segment: the sum of its words'.
fn sense_of(entry: &Entry, products: &[f32], of_word: &mut Vec<f32>, dots: &mut [f32]) {
    let segment = &entry.segment;
    of_word.clear();
    let mut start = 0;
    of_word.extend(segment.piece_ends.iter().map(|end| {
        let pieces = segment.pieces.get(start as usize..*end as usize).unwrap_or_default();
        start = *end;
        let sum: f32 = pieces.iter().filter_map(|piece| products.get(usize::from(*piece))).sum();
        sum / pieces.len().max(1) as f32
    }));
    let mut start = 0;
    for (passage, dot) in segment.passages.iter().zip(dots) {
        let entries =
            segment.entries.get(start as usize..passage.entries_end as usize).unwrap_or_default();
        start = passage.entries_end;
        *dot = entries.iter().filter_map(|entry| of_word.get((entry & !REPEATED) as usize)).sum();
    }
}

struct Ranker<'a> {
    view: &'a View,
    question: &'a Question,
    scratch: &'a Scratch,
    /// How far the words and the meaning of the question count.
    strength: f32,
    inverse_mass: f32,
    whose: Whose,
}

impl Ranker<'_> {
    /// Every turn's best passage: score, turn, passage.
    fn best_passages(&self) -> Vec<(f32, u32, u32)> {
        let mut turns = Vec::with_capacity(self.view.turns.len());
        let mut start = 0;
        for (number, turn) in (0..).zip(&self.view.turns) {
            let mut best = (f32::NEG_INFINITY, number, start as u32);
            for passage in start..turn.passages_end {
                let score = self.features(passage).total();
                if score > best.0 {
                    best = (score, number, passage as u32);
                }
            }
            start = turn.passages_end;
            let date = if self.question.spans.is_empty() {
                0.
            } else {
                time::nearness(turn.day, &self.question.spans)
            };
            best.0 += WEIGHTS.speaker * self.whose.of(turn) + WEIGHTS.date * date;
            turns.push(best);
        }
        turns
    }

    /// The features of a passage, without those of its turn.
    #[inline]
    fn features(&self, passage: usize) -> Features {
        let at = |list: &[f32]| list.get(passage).copied().unwrap_or_default();
        let cues = self.view.cues.get(passage).copied().unwrap_or_default();
        let session = self.view.session_of.get(passage).map_or(0, |session| *session as usize);
        let topic = self.scratch.topic.get(session).copied().unwrap_or_default();
        let near = at(&self.scratch.near) * self.inverse_mass * self.strength;
        let sense = at(&self.scratch.dots) * self.strength;
        let standing = if cfg!(feature = "vectors") { sense } else { near };
        Features {
            near: WEIGHTS.near * near,
            sense: WEIGHTS.sense * sense,
            sense_around: WEIGHTS.sense_around * at(&self.scratch.around) * self.strength,
            topic: WEIGHTS.topic * topic * self.inverse_mass * self.strength,
            me: WEIGHTS.me * number(cues.is_me()),
            answer: WEIGHTS.answer * self.answers(cues),
            time_words: WEIGHTS.time_words * f32::from(cues.times()),
            rarity: WEIGHTS.rarity * at(&self.view.rarity),
            standing: WEIGHTS.standing * standing * number(cues.is_standing()),
        }
    }

    /// How many kinds of answer the passage holds that are asked for.
    #[inline]
    fn answers(&self, cues: Cues) -> f32 {
        let question = self.question;
        number(question.asks_when && cues.times() > 0)
            + number(question.asks_number && cues.has_number())
            + number(question.asks_name && cues.has_name())
    }

    fn hit(
        &self,
        index: &Index,
        terms: &[Term<'_>],
        score: f32,
        turn: usize,
        passage: usize,
    ) -> Option<Hit> {
        let view = self.view;
        let segment = view.starts.partition_point(|(_, first)| *first <= turn).checked_sub(1)?;
        let (first_passage, first_turn) = view.starts.get(segment)?;
        let segment = &index.entries().nth(segment)?.segment;
        let row = segment.turns.get(turn - first_turn)?;
        let found = segment.passages.get(passage - first_passage)?;
        let features = self.features(passage);
        let date = time::nearness(row.day, &self.question.spans);
        Some(Hit {
            seq: row.seq,
            score,
            passage: found.start as usize..found.end as usize,
            at: row.at,
            day: row.day,
            session: view.session_of.get(passage).copied()?,
            length: row.length,
            why: Why {
                words: terms.iter().filter_map(|term| self.found(term, passage)).collect(),
                near: features.near,
                sense: features.sense,
                sense_around: features.sense_around,
                topic: features.topic,
                speaker: WEIGHTS.speaker * self.whose.of(view.turns.get(turn)?),
                date: WEIGHTS.date * date,
                me: features.me,
                answer: features.answer,
                time_words: features.time_words,
                rarity: features.rarity,
                standing: features.standing,
            },
        })
    }

    /// How strongly a passage or its neighbours hold a word.
    fn found(&self, term: &Term<'_>, passage: usize) -> Option<(String, f32)> {
        let session = self.view.sessions.get(*self.view.session_of.get(passage)? as usize)?;
        let first = passage.saturating_sub(norms::REACH).max(session.start);
        let from = term.passages.partition_point(|other| (*other as usize) < first);
        let around = term.passages.iter().skip(from).map(|other| *other as usize);
        let share = around
            .take_while(|other| *other < session.end.min(passage + norms::REACH + 1))
            .filter_map(|other| match other.cmp(&passage) {
                Ordering::Less => FADE_AFTER.get(passage - other),
                _ => FADE_BEFORE.get(other - passage),
            })
            .copied()
            .fold(0., f32::max);
        (share > 0.).then(|| (term.word.text.clone(), share))
    }
}

/// What each feature of a passage adds to its score.
struct Features {
    near: f32,
    sense: f32,
    sense_around: f32,
    topic: f32,
    me: f32,
    answer: f32,
    time_words: f32,
    rarity: f32,
    standing: f32,
}

impl Features {
    #[inline]
    fn total(&self) -> f32 {
        let words = self.near + self.sense + self.sense_around + self.topic + self.standing;
        words + self.me + self.answer + self.time_words + self.rarity
    }
}

#[inline]
fn number(is: bool) -> f32 {
    f32::from(u8::from(is))
}

/// The best `n` visible turns, best first. Equal scores keep the order of the conversation.
fn choose(
    turns: &mut [(f32, u32, u32)],
    view: &View,
    visible: &impl Fn(u64) -> bool,
    n: usize,
) -> Vec<(f32, u32, u32)> {
    let better = |a: &(f32, u32, u32), b: &(f32, u32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    let is_visible = |turn: &(f32, u32, u32)| {
        view.turns.get(turn.1 as usize).is_some_and(|turn| visible(turn.seq))
    };
    let mut chosen = Vec::new();
    let mut rest = turns;
    let mut wanted = n.saturating_mul(2).max(32);
    while chosen.len() < n && !rest.is_empty() {
        let taken = wanted.min(rest.len());
        if taken < rest.len() {
            rest.select_nth_unstable_by(taken, better);
        }
        let (best, others) = rest.split_at_mut(taken);
        best.sort_unstable_by(better);
        chosen.extend(best.iter().filter(|turn| is_visible(turn)).take(n - chosen.len()));
        rest = others;
        wanted = wanted.saturating_mul(4);
    }
    chosen
}

fn renew(list: &mut Vec<f32>, length: usize) {
    list.clear();
    list.resize(length, 0.);
}
