//! Ranking: eleven features of each passage, and the best passage of each turn.

use zeroize::Zeroize;

use super::{
    Entry, Index,
    speakers::{Whose, name_words},
    view::{NO_WORD, Part, PassageWords, TurnView, View, rarity},
};
use crate::{
    hit::{Hit, Why},
    question::{Question, QuestionWord},
    segment::{REPEATED, norms::REACH},
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
const FADE_AFTER: [f32; REACH + 1] = [1., 0.7, 0.49, 0.343, 0.2401, 0.16807];
const FADE_BEFORE: [f32; REACH + 1] = [1., 0.5, 0.25, 0.125, 0.0625, 0.03125];
/// What is left of a neighbour's meaning with each passage of distance.
const FADE_SENSE: [f32; REACH] = [0.7, 0.49, 0.343, 0.2401, 0.16807];
/// The number of passages of a session in which a word stands, at which it counts half for the topic.
const TOPIC_HALF: f32 = 1.5;
/// The rarity of all words of a question below which it is weak evidence.
const STRONG: f32 = 10.;

/// Memory that one question leaves for the next. Lists are by slot, `topic` by session, `of_word` by word.
#[derive(Default)]
pub(super) struct Scratch {
    near: Vec<f32>,
    topic: Vec<f32>,
    sense: Vec<f32>,
    around: Vec<f32>,
    scores: Vec<f32>,
    products: Vec<i32>,
    of_word: Vec<i32>,
    of_number: Option<Box<[i32; 1 << 16]>>,
    turns: Vec<(f32, u32)>,
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

/// A word of the question, with the slots of the passages that hold it, ascending.
struct Term<'a> {
    word: &'a QuestionWord,
    rarity: f32,
    slots: Vec<u32>,
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
    renew(&mut scratch.near, view.cues.len());
    renew(&mut scratch.topic, view.sessions.len());
    for term in &terms {
        spread(view, term, &mut scratch.near, &mut scratch.topic);
    }
    sense(index, view, question, &words, scratch);
    let strength = (mass / STRONG).min(1.);
    let ranker = Ranker {
        view,
        question,
        strength,
        words: strength / mass.max(1e-9),
        whose: Whose::asked(question, view),
    };
    ranker.score_passages(scratch);
    ranker.score_turns(scratch);
    let hits = choose(&mut scratch.turns, view, visible, n);
    hits.iter()
        .filter_map(|(score, turn)| ranker.hit(index, scratch, &terms, *score, *turn as usize))
        .collect()
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
        let slots = slots_with(index, view, &stems);
        let rarity = rarity(view.slot_of.len(), slots.len());
        terms.push(Term { word, rarity, slots });
    }
    terms
}

/// The slots of the passages that hold any of these stems, ascending.
fn slots_with(index: &Index, view: &View, stems: &[String]) -> Vec<u32> {
    let mut slots = Vec::new();
    for (entry, part) in index.entries().zip(&view.parts) {
        let from = slots.len();
        for stem in stems {
            let number = entry.segment.find_stem(stem);
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
fn spread(view: &View, term: &Term<'_>, near: &mut [f32], topic: &mut [f32]) {
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

/// How much of the question's meaning each passage has, alone and with its neighbours.
fn sense(
    index: &Index,
    view: &View,
    question: &Question,
    words: &[&QuestionWord],
    scratch: &mut Scratch,
) {
    let slots = view.cues.len();
    renew(&mut scratch.sense, slots);
    scratch.around.resize(slots, 0.);
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
        scratch.around.fill(0.);
        return;
    }
    asked.iter_mut().for_each(|value| *value /= norm);
    vectors::products(&asked, view.pieces.iter().copied(), &mut scratch.products);
    for (entry, part) in index.entries().zip(&view.parts) {
        let slots = view.slot_of.get(part.first_passage..).unwrap_or_default();
        sense_of(entry, part, slots, scratch);
    }
    add_neighbours(&scratch.sense, &mut scratch.around);
}

/// The dot product of the question's meaning with each passage of a segment: the sum of its words'.
fn sense_of(entry: &Entry, part: &Part, slots: &[u32], scratch: &mut Scratch) {
    let segment = &entry.segment;
    let mut start = 0;
    let products = &scratch.products;
    let of_piece = |piece: &u16| products.get(usize::from(*piece)).copied().unwrap_or_default();
    let of_words = segment.piece_ends.iter().map(|end| {
        let pieces = segment.pieces.get(start as usize..*end as usize).unwrap_or_default();
        start = *end;
        match pieces {
            [] => 0,
            [only] => of_piece(only),
            [first, second] => (of_piece(first) + of_piece(second)) / 2,
            _ => pieces.iter().map(of_piece).sum::<i32>() / pieces.len() as i32,
        }
    });
    let slots = slots.iter().take(part.passages);
    if let Some(words) = &part.words {
        // A list as long as there are numbers needs no look at its end.
        let of_number = scratch.of_number.get_or_insert_with(|| Box::new([0; 1 << 16]));
        for (number, word) in of_number.iter_mut().zip(of_words) {
            *number = word;
        }
        if let Some(none) = of_number.get_mut(usize::from(NO_WORD)) {
            *none = 0;
        }
        sum_fours(words, of_number, slots, &mut scratch.sense);
        return;
    }
    scratch.of_word.clear();
    scratch.of_word.extend(of_words);
    let of_word = &scratch.of_word;
    let mut start = 0;
    for (passage, slot) in segment.passages.iter().zip(slots) {
        let entries =
            segment.entries.get(start as usize..passage.entries_end as usize).unwrap_or_default();
        start = passage.entries_end;
        let product =
            |entry: &u32| of_word.get((entry & !REPEATED) as usize).copied().unwrap_or_default();
        if let Some(sense) = scratch.sense.get_mut(*slot as usize) {
            *sense = entries.iter().map(product).sum::<i32>() as f32 * (1. / vectors::UNIT);
        }
    }
}

fn sum_fours<'a>(
    words: &PassageWords,
    of_number: &[i32; 1 << 16],
    slots: impl Iterator<Item = &'a u32>,
    sense: &mut [f32],
) {
    let of = |number: u16| of_number.get(usize::from(number)).copied().unwrap_or_default();
    let mut fours = words.fours.iter();
    let mut start = 0;
    for (end, slot) in words.ends.iter().zip(slots) {
        let mut sum = 0i32;
        for [a, b, c, d] in fours.by_ref().take((end - start) as usize) {
            sum += (of(*a) + of(*b)) + (of(*c) + of(*d));
        }
        start = *end;
        if let Some(sense) = sense.get_mut(*slot as usize) {
            *sense = sum as f32 * (1. / vectors::UNIT);
        }
    }
}

/// Adds to each passage what its neighbours have, faded. Empty slots between sessions hold nothing.
fn add_neighbours(own: &[f32], around: &mut [f32]) {
    /// Slots that fit a processor's nearest memory.
    const BLOCK: usize = 2048;
    for (block, around) in around.chunks_mut(BLOCK).enumerate() {
        let start = block * BLOCK;
        around.copy_from_slice(own.get(start..start + around.len()).unwrap_or_default());
        for (distance, fade) in (1..).zip(FADE_SENSE) {
            add_faded(around, own.get(start + distance..).unwrap_or_default(), fade);
            match start.checked_sub(distance) {
                Some(start) => add_faded(around, own.get(start..).unwrap_or_default(), fade),
                None => add_faded(around.get_mut(distance..).unwrap_or_default(), own, fade),
            }
        }
    }
}

fn add_faded(sums: &mut [f32], values: &[f32], fade: f32) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += fade * value;
    }
}

struct Ranker<'a> {
    view: &'a View,
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
        let near = WEIGHTS.near * self.words;
        let (sense, around) = (WEIGHTS.sense * self.strength, WEIGHTS.sense_around * self.strength);
        scratch.scores.clear();
        let words = scratch.near.iter().zip(&view.rarity);
        let own = scratch.sense.iter().zip(&view.inverse_own);
        let both = scratch.around.iter().zip(&view.inverse_around);
        scratch.scores.extend(words.zip(own.zip(both)).map(|((words, rarity), (own, both))| {
            near * words
                + WEIGHTS.rarity * rarity
                + sense * own.0 * own.1
                + around * both.0 * both.1
        }));
        let mut of_cues = [0f32; 256];
        for (cues, value) in (0..=u8::MAX).map(Cues).zip(&mut of_cues) {
            *value = WEIGHTS.me * number(cues.is_me())
                + WEIGHTS.time_words * f32::from(cues.times())
                + WEIGHTS.answer * self.answers(cues);
        }
        for (score, cues) in scratch.scores.iter_mut().zip(&view.cues) {
            *score += of_cues.get(usize::from(cues.0)).copied().unwrap_or_default();
        }
        for slot in view.standing.iter().map(|slot| *slot as usize) {
            let standing = self.standing(scratch, slot);
            if let Some(score) = scratch.scores.get_mut(slot) {
                *score += standing;
            }
        }
    }

    /// Scores every turn: its best passage, its session's topic, its speaker and its day.
    fn score_turns(&self, scratch: &mut Scratch) {
        let spans = &self.question.spans;
        let topic_weight = WEIGHTS.topic * self.words;
        scratch.turns.clear();
        scratch.turns.extend((0..).zip(&self.view.turns).map(|(number, turn)| {
            let passages = scratch.scores.get(turn.slots.start as usize..turn.slots.end as usize);
            let mut best = f32::NEG_INFINITY;
            for score in passages.unwrap_or_default() {
                best = if *score > best { *score } else { best };
            }
            let date =
                if spans.is_empty() { 0. } else { WEIGHTS.date * time::nearness(turn.day, spans) };
            let topic = scratch.topic.get(turn.session as usize).copied().unwrap_or_default();
            (best + topic_weight * topic + WEIGHTS.speaker * self.whose.of(turn) + date, number)
        }));
    }

    /// What a standing wish adds: more, the better the passage fits the question.
    fn standing(&self, scratch: &Scratch, slot: usize) -> f32 {
        let at = |list: &[f32]| list.get(slot).copied().unwrap_or_default();
        let fits = if cfg!(feature = "vectors") {
            at(&scratch.sense) * at(&self.view.inverse_own) * self.strength
        } else {
            at(&scratch.near) * self.words
        };
        WEIGHTS.standing * fits
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
        let slot = best_slot(seen, &scratch.scores)?;
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
                words: terms.iter().filter_map(|term| self.found(term, slot)).collect(),
                near: WEIGHTS.near * self.words * at(&scratch.near),
                sense: WEIGHTS.sense * self.strength * at(&scratch.sense) * at(&view.inverse_own),
                sense_around: WEIGHTS.sense_around
                    * self.strength
                    * at(&scratch.around)
                    * at(&view.inverse_around),
                topic: WEIGHTS.topic * self.words * topic,
                speaker: WEIGHTS.speaker * self.whose.of(seen),
                date: WEIGHTS.date * time::nearness(row.day, &self.question.spans),
                me: WEIGHTS.me * number(found.cues.is_me()),
                answer: WEIGHTS.answer * self.answers(found.cues),
                time_words: WEIGHTS.time_words * f32::from(found.cues.times()),
                rarity: WEIGHTS.rarity * at(&view.rarity),
                standing,
            },
        })
    }

    /// How strongly a passage or its neighbours hold a word.
    fn found(&self, term: &Term<'_>, slot: usize) -> Option<(String, f32)> {
        let first = slot.saturating_sub(REACH);
        let from = term.slots.partition_point(|other| (*other as usize) < first);
        let around = term.slots.iter().skip(from).map(|other| *other as usize);
        let share = around
            .take_while(|other| *other <= slot + REACH)
            .filter_map(|other| match other.checked_sub(slot) {
                Some(ahead) => FADE_BEFORE.get(ahead),
                None => FADE_AFTER.get(slot - other),
            })
            .copied()
            .fold(0., f32::max);
        (share > 0.).then(|| (term.word.text.clone(), share))
    }
}

/// The slot of a turn's best passage, the first of equals.
fn best_slot(turn: &TurnView, scores: &[f32]) -> Option<usize> {
    let range = turn.slots.start as usize..turn.slots.end as usize;
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

/// The best `n` visible turns, best first. Equal scores keep the order of the conversation.
fn choose(
    turns: &mut [(f32, u32)],
    view: &View,
    visible: &impl Fn(u64) -> bool,
    n: usize,
) -> Vec<(f32, u32)> {
    let better = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    let is_visible =
        |turn: &(f32, u32)| view.turns.get(turn.1 as usize).is_some_and(|turn| visible(turn.seq));
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
