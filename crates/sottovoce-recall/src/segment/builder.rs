//! Building a segment.

use std::collections::HashMap;

use super::{PassageRow, Segment, TurnRow};
use crate::{
    secret::{Word, extend},
    text::{beginning, language::Language, passages, stop_words::is_stop_word, words::Words},
    turn::Turn,
};

/// Words of one passage at most. Where signs other than blanks divide words, a passage may have more; it is divided.
const MOST_WORDS: usize = 60;
/// Letters of a speaker's or thread's name that count.
const LONGEST_NAME: usize = 200;
/// Letters of a caption that are indexed, in bytes.
const LONGEST_CAPTION: usize = 4096;
/// A word that says that something was shown, in front of a caption's words.
const SHARES: &str = "shares";

/// How a segment is built.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct BuildOptions {
    /// The language of a message that does not show its own: the owner's.
    pub language: Language,
}

impl BuildOptions {
    /// For messages that are in `language` if they do not show another.
    pub fn new(language: Language) -> Self {
        Self { language }
    }
}

/// Collects turns and makes a segment of them.
pub(crate) struct Builder {
    segment: Segment,
    language: Language,
    /// The stems of the words seen, one map for each language.
    seen: [HashMap<Word, u32>; 4],
    stems: HashMap<Word, u32>,
    /// The stem numbers of the passage at hand.
    passage_stems: Vec<u32>,
    words: Words,
}

impl Builder {
    pub(crate) fn new(options: &BuildOptions) -> Self {
        Self {
            segment: Segment::default(),
            language: options.language,
            seen: Default::default(),
            stems: HashMap::new(),
            passage_stems: Vec::new(),
            words: Words::default(),
        }
    }

    /// Adds a turn. Of a very long message it takes the first 512 passages, some 12,000 words.
    pub(crate) fn add(&mut self, turn: &Turn<'_>) {
        let mut words = std::mem::take(&mut self.words);
        words.clear();
        let ranges = passages::split(turn.text);
        let mut ends = Vec::with_capacity(ranges.len());
        for range in &ranges {
            words.add(turn.text.get(range.clone()).unwrap_or_default(), usize::MAX);
            ends.push(words.len());
        }
        let language = Language::of(&words, self.language);
        let (mut start, mut rows) = (0, 0);
        for (range, end) in ranges.iter().zip(&ends) {
            while *end - start > MOST_WORDS && rows < passages::MOST {
                self.add_words(&words, start..start + MOST_WORDS, language);
                self.end_passage(range.clone());
                start += MOST_WORDS;
                rows += 1;
            }
            self.add_words(&words, start..(*end).min(start + MOST_WORDS), language);
            start = *end;
            if let Some(caption) = turn.caption
                && Some(range) == ranges.last()
            {
                words.add(SHARES, 1);
                words.add(beginning(caption, LONGEST_CAPTION), MOST_WORDS);
                self.add_words(&words, *end..words.len(), language);
            }
            self.end_passage(range.clone());
            rows += 1;
            if rows >= passages::MOST {
                break;
            }
        }
        self.words = words;
        let length =
            turn.text.chars().count() + turn.caption.map_or(0, |caption| caption.chars().count());
        let speaker = turn.speaker.map_or(0, |name| number_in(&mut self.segment.speakers, name));
        let thread = turn.thread.map_or(0, |name| number_in(&mut self.segment.threads, name));
        self.end_turn(TurnRow {
            seq: turn.seq,
            at: turn.at,
            day: turn.day,
            length: u32::try_from(length).unwrap_or(u32::MAX),
            passages_end: 0,
            session: turn.session.map_or(0, |session| session.saturating_add(1)),
            speaker,
            thread,
            role: turn.role,
            language,
        });
    }

    /// Adds the turns of a segment that `keep` accepts.
    pub(crate) fn add_from(
        &mut self,
        from: &Segment,
        is_behind_refused: &mut bool,
        keep: impl Fn(u64) -> bool,
    ) {
        // Stems of other segments are numbered as they come.
        let mut numbers: Vec<Option<u32>> = vec![None; from.stems.len()];
        for (turn, range) in from.turn_passages() {
            if !keep(turn.seq) {
                *is_behind_refused = true;
                continue;
            }
            let has_meaning = !std::mem::take(is_behind_refused);
            for passage in range {
                for stem in from.entries(passage) {
                    let (Some(number), Some(word)) =
                        (numbers.get_mut(*stem as usize), from.stems.get(*stem as usize))
                    else {
                        continue;
                    };
                    let number = *number.get_or_insert_with(|| self.stem(word.as_str()));
                    self.push_entry(number);
                }
                if has_meaning && let Some((row, numbers)) = from.meanings.get(passage) {
                    self.segment.meanings.set(self.segment.passages.len(), row, numbers);
                }
                if let Some(row) = from.passages.get(passage) {
                    self.end_passage(row.start as usize..row.end as usize);
                }
            }
            let place = from.place(turn);
            let speaker =
                from.speaker(turn).map_or(0, |name| number_in(&mut self.segment.speakers, name));
            let thread = place.thread.map_or(0, |name| number_in(&mut self.segment.threads, name));
            self.end_turn(TurnRow { speaker, thread, ..*turn });
        }
    }

    fn add_words(&mut self, words: &Words, range: std::ops::Range<usize>, language: Language) {
        for (word, _) in words.range(range) {
            if !is_stop_word(word, language) {
                let number = self.stem_of(word, language);
                self.push_entry(number);
            }
        }
    }

    /// The number of a word's stem.
    fn stem_of(&mut self, word: &str, language: Language) -> u32 {
        let seen = self.seen.get(language.number()).and_then(|seen| seen.get(word));
        if let Some(number) = seen {
            return *number;
        }
        let number = self.stem(language.stem(word).as_str());
        if let Some(seen) = self.seen.get_mut(language.number()) {
            seen.insert(word.into(), number);
        }
        number
    }

    /// The number of a stem.
    fn stem(&mut self, stem: &str) -> u32 {
        if let Some(number) = self.stems.get(stem) {
            return *number;
        }
        let number = self.segment.stems.len() as u32;
        self.segment.stems.push(stem.into());
        self.stems.insert(stem.into(), number);
        number
    }

    fn push_entry(&mut self, stem: u32) {
        if !self.passage_stems.contains(&stem) {
            self.passage_stems.push(stem);
            extend(&mut self.segment.entries, &[stem]);
        }
    }

    fn end_passage(&mut self, range: std::ops::Range<usize>) {
        self.passage_stems.clear();
        self.segment.passages.push(PassageRow {
            entries_end: self.segment.entries.len() as u32,
            start: u32::try_from(range.start).unwrap_or(u32::MAX),
            end: u32::try_from(range.end).unwrap_or(u32::MAX),
        });
        self.segment.meanings.resize(self.segment.passages.len());
    }

    fn end_turn(&mut self, turn: TurnRow) {
        let passages_end = self.segment.passages.len() as u32;
        self.segment.turns.push(TurnRow { passages_end, ..turn });
    }

    /// Sorts the stems and lists their passages.
    pub(crate) fn finish(self) -> Segment {
        let mut segment = self.segment;
        sort_stems(&mut segment);
        segment.shrink();
        segment.index_stems();
        segment
    }
}

impl Segment {
    fn shrink(&mut self) {
        self.turns.shrink_to_fit();
        self.passages.shrink_to_fit();
        self.stems.shrink_to_fit();
    }

    /// Lists the passages of each stem.
    pub(super) fn index_stems(&mut self) {
        let mut counts = vec![0u32; self.stems.len()];
        for stem in self.entries.iter() {
            if let Some(count) = counts.get_mut(*stem as usize) {
                *count += 1;
            }
        }
        let mut total = 0;
        for count in &mut counts {
            total += std::mem::replace(count, total);
        }
        // Each stem's next free place; afterwards its end.
        let mut ends = counts;
        let mut postings = vec![0u32; total as usize];
        let mut entries = self.entries.iter();
        let mut start = 0;
        for (passage, row) in self.passages.iter().enumerate() {
            let count = (row.entries_end - start) as usize;
            start = row.entries_end;
            for stem in entries.by_ref().take(count) {
                if let Some(end) = ends.get_mut(*stem as usize)
                    && let Some(posting) = postings.get_mut(*end as usize)
                {
                    *posting = passage as u32;
                    *end += 1;
                }
            }
        }
        self.posting_ends = ends;
        self.postings = postings;
    }
}

/// The number of a name plus one; adds the name if it is new.
fn number_in(names: &mut Vec<Word>, name: &str) -> u32 {
    let end = name.char_indices().nth(LONGEST_NAME).map_or(name.len(), |(at, _)| at);
    let name = name.get(..end).unwrap_or(name);
    let found = names.iter().position(|other| other.as_str() == name);
    let index = found.unwrap_or_else(|| {
        names.push(name.into());
        names.len() - 1
    });
    index as u32 + 1
}

fn sort_stems(segment: &mut Segment) {
    let mut order: Vec<(Word, u32)> =
        std::mem::take(&mut segment.stems).into_iter().zip(0..).collect();
    order.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let mut numbers = vec![0u32; order.len()];
    for ((_, old), new) in order.iter().zip(0..) {
        if let Some(number) = numbers.get_mut(*old as usize) {
            *number = new;
        }
    }
    for stem in segment.entries.iter_mut() {
        *stem = numbers.get(*stem as usize).copied().unwrap_or_default();
    }
    segment.stems = order.into_iter().map(|(stem, _)| stem).collect();
}
