//! The index: segments in the order of the conversation, and statistics over all of them.

mod near;
mod rank;
mod search;
mod segments;
mod speakers;
mod terms;
mod view;
mod weights;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    ops::{Range, RangeInclusive},
};

use zeroize::Zeroizing;

use crate::{
    hit::Hit,
    meaning::Meaning,
    question::Question,
    secret::Word,
    segment::{BuildOptions, Segment},
    time,
    turn::{Role, Turn},
};
use rank::Scratch;
use segments::Segments;
use view::{TurnView, View};
pub use weights::Weights;

/// The index of one conversation: segments that the caller numbers, and a tail of newer turns.
///
/// Adding a turn only notes it; the next question indexes what was noted. What a rank is depends on the turns alone,
/// not on how they are divided into segments.
#[derive(Default)]
pub struct Index {
    options: BuildOptions,
    weights: Weights,
    segments: Segments,
    /// Turns that are not indexed yet.
    noted: Vec<NotedTurn>,
    /// What is derived from all segments; `None` after a change of a pack.
    view: Option<View>,
    /// Whether `view` has all turns of the tail.
    is_current: bool,
    scratch: Scratch,
}

/// A turn that waits for the next question.
struct NotedTurn {
    seq: u64,
    at: i64,
    day: i32,
    role: Role,
    session: Option<u32>,
    speaker: Option<Word>,
    thread: Option<Word>,
    text: Zeroizing<String>,
    caption: Option<Zeroizing<String>>,
}

impl Index {
    /// An empty index. The options are for the turns of the tail.
    pub fn new(options: BuildOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Sets what each feature counts from the next question on.
    pub fn set_weights(&mut self, weights: Weights) {
        self.weights = weights;
    }

    /// Puts a segment under a number; segments are in the order of their numbers, before the tail. Returns the one
    /// that it replaces. Turns that the segment covers leave the tail.
    pub fn insert(&mut self, number: u64, segment: Segment) -> Option<Segment> {
        if !self.segments.tail.is_empty() || !self.noted.is_empty() {
            let covered: HashSet<u64> = segment.seqs().collect();
            self.retain_in_tail(&|seq| !covered.contains(&seq), false);
        }
        let entry = self.segments.entry(segment);
        self.view = None;
        let before = self.segments.packs.insert(number, entry);
        before.map(|entry| self.segments.take_out(entry))
    }

    /// Takes out the segment with this number.
    pub fn remove(&mut self, number: u64) -> Option<Segment> {
        let entry = self.segments.packs.remove(&number)?;
        self.view = None;
        Some(self.segments.take_out(entry))
    }

    /// Moves the tail's turns with these numbers to the end of the segment with this number, which is made if there is
    /// none. Returns the segment.
    pub fn pack(&mut self, number: u64, seqs: RangeInclusive<u64>) -> Option<&Segment> {
        self.index_noted();
        let is_meant = |seq| seqs.contains(&seq);
        if self.segments.tail.iter().any(|entry| entry.segment.seqs().any(is_meant)) {
            let mut parts: Vec<Segment> = self.remove(number).into_iter().collect();
            for entry in std::mem::take(&mut self.segments.tail) {
                let segment = self.segments.take_out(entry);
                parts.push(segment.retain(is_meant));
                let rest = segment.retain(|seq| !is_meant(seq));
                if !rest.is_empty() {
                    let entry = self.segments.entry(rest);
                    self.segments.tail.push(entry);
                }
            }
            self.insert(number, Segment::join(&parts));
        }
        self.segment(number)
    }

    /// The segment with this number.
    pub fn segment(&self, number: u64) -> Option<&Segment> {
        Some(&self.segments.packs.get(&number)?.segment)
    }

    /// The numbers of the segments, in order.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        self.segments.packs.keys().copied()
    }

    /// Notes a turn after all others. The next question indexes it.
    pub fn push(&mut self, turn: &Turn<'_>) {
        self.noted.push(NotedTurn {
            seq: turn.seq,
            at: turn.at,
            day: turn.day,
            role: turn.role,
            session: turn.session,
            speaker: turn.speaker.map(Word::from),
            thread: turn.thread.map(Word::from),
            text: Zeroizing::new(turn.text.to_owned()),
            caption: turn.caption.map(|caption| Zeroizing::new(caption.to_owned())),
        });
        self.is_current = false;
    }

    /// Removes the turns that `keep` refuses, from all segments. Returns the numbers of the segments that changed.
    pub fn retain(&mut self, keep: impl Fn(u64) -> bool) -> Vec<u64> {
        self.view = None;
        let mut changed = Vec::new();
        let mut is_behind_refused = false;
        for (number, entry) in std::mem::take(&mut self.segments.packs) {
            let entry = if is_behind_refused || entry.segment.seqs().any(|seq| !keep(seq)) {
                changed.push(number);
                let segment =
                    self.segments.take_out(entry).retain_after(&mut is_behind_refused, &keep);
                self.segments.entry(segment)
            } else {
                entry
            };
            self.segments.packs.insert(number, entry);
        }
        self.retain_in_tail(&keep, is_behind_refused);
        // What was removed is to be forgotten at once, and its stems with it.
        self.segments.drop_gone_stems();
        changed
    }

    fn retain_in_tail(&mut self, keep: &impl Fn(u64) -> bool, mut is_behind_refused: bool) {
        self.noted.retain(|turn| keep(turn.seq));
        for entry in std::mem::take(&mut self.segments.tail) {
            if !is_behind_refused && entry.segment.seqs().all(keep) {
                self.segments.tail.push(entry);
                continue;
            }
            self.view = None;
            let segment = self.segments.take_out(entry).retain_after(&mut is_behind_refused, keep);
            if !segment.is_empty() {
                let entry = self.segments.entry(segment);
                self.segments.tail.push(entry);
            }
        }
    }

    /// How many turns it covers.
    pub fn len(&self) -> usize {
        self.segments.entries().map(|entry| entry.segment.len()).sum::<usize>() + self.noted.len()
    }

    /// Whether it covers no turn.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The years from the earliest to the latest turn, for [`crate::Asked`].
    pub fn years(&self) -> Option<RangeInclusive<i16>> {
        let noted = self.noted.iter().map(|turn| (turn.day, turn.day));
        let days = self.segments.entries().filter_map(|entry| entry.days).chain(noted);
        let (first, last) = days.reduce(|all, days| (all.0.min(days.0), all.1.max(days.1)))?;
        Some(time::year_of(first)?..=time::year_of(last)?)
    }

    /// The best `n` turns for a question, best first, among those that are `visible`. Equal scores keep the order of
    /// the conversation.
    pub fn rank(
        &mut self,
        question: &Question,
        visible: impl Fn(u64) -> bool,
        n: usize,
    ) -> Vec<Hit> {
        self.rank_where(question, |_| Some(|turn: &TurnView| visible(turn.seq)), n)
    }

    /// The same among the turns of one thread; `None` for those outside all threads.
    pub fn rank_in(
        &mut self,
        thread: Option<&str>,
        question: &Question,
        visible: impl Fn(u64) -> bool,
        n: usize,
    ) -> Vec<Hit> {
        let of_thread = |view: &View| {
            let number = view.thread(thread)?;
            Some(move |turn: &TurnView| turn.thread == number && visible(turn.seq))
        };
        self.rank_where(question, of_thread, n)
    }

    fn rank_where<F: Fn(&TurnView) -> bool>(
        &mut self,
        question: &Question,
        visible: impl FnOnce(&View) -> Option<F>,
        n: usize,
    ) -> Vec<Hit> {
        self.refresh();
        let mut scratch = std::mem::take(&mut self.scratch);
        let ranked = self.view.as_ref().and_then(|view| {
            let (segments, weights) = (&self.segments, &self.weights);
            Some(rank::rank(segments, weights, view, question, &visible(view)?, n, &mut scratch))
        });
        self.scratch = scratch;
        ranked.unwrap_or_default()
    }

    /// The newest `n` turns without meanings, newest first, each with its passages in bytes of its text. Without those
    /// that were only noted.
    pub fn without_meaning(&self, n: usize) -> Vec<(u64, Vec<Range<usize>>)> {
        let segments: Vec<&Segment> = self.segments.entries().map(|entry| &entry.segment).collect();
        segments.iter().rev().flat_map(|segment| segment.without_meaning()).take(n).collect()
    }

    /// How many turns have meanings.
    pub fn with_meaning(&self) -> usize {
        self.segments.entries().map(|entry| entry.segment.with_meaning()).sum()
    }

    /// Sets what turns mean: by number, one for each passage.
    pub fn set_meanings(&mut self, meanings: &HashMap<u64, Vec<Meaning>>) {
        for entry in self.segments.packs.values_mut().chain(&mut self.segments.tail) {
            entry.segment.set_meanings(meanings);
        }
    }

    /// Indexes the turns that were noted. A question does it too; a host may do it while nobody waits.
    pub fn refresh(&mut self) {
        if self.is_current && self.view.is_some() {
            return;
        }
        self.index_noted();
        self.segments.drop_gone_stems();
        self.view = Some(match self.view.take() {
            Some(view) => view.renewed(&self.segments),
            None => View::new(&self.segments),
        });
        self.is_current = true;
    }

    /// Makes a segment of the turns that were noted, and joins it with the tail's segments of its size.
    fn index_noted(&mut self) {
        if self.noted.is_empty() {
            return;
        }
        let noted = std::mem::take(&mut self.noted);
        let mut segment = Segment::build(noted.iter().map(NotedTurn::turn), &self.options);
        while let Some(last) =
            self.segments.tail.pop_if(|last| last.segment.len() <= 2 * segment.len())
        {
            let last = self.segments.take_out(last);
            segment = Segment::join([&last, &segment]);
        }
        let entry = self.segments.entry(segment);
        self.segments.tail.push(entry);
    }
}

impl NotedTurn {
    fn turn(&self) -> Turn<'_> {
        Turn {
            seq: self.seq,
            at: self.at,
            day: self.day,
            role: self.role,
            speaker: self.speaker.as_ref().map(Word::as_str),
            thread: self.thread.as_ref().map(Word::as_str),
            session: self.session,
            text: &self.text,
            caption: self.caption.as_ref().map(|caption| caption.as_str()),
        }
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("segments", &self.segments.packs.len())
            .field("turns", &self.len())
            .field("stems", &self.segments.stems().len())
            .finish_non_exhaustive()
    }
}
