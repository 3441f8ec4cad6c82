//! Words: runs of letters, digits and marks, in lower case.

use std::{iter::Peekable, ops::Range, str::CharIndices};

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};
use zeroize::Zeroizing;

use super::fold::fold;
use crate::secret::{Word, reserve};

/// Characters of a word that count. The rest of a longer word is skipped.
const LONGEST_WORD: usize = 64;
/// Words that a French apostrophe joins to the next word.
const ELIDED: [&str; 10] = ["l", "d", "j", "m", "n", "t", "s", "c", "qu", "jusqu"];

/// One word of a [`Words`] buffer.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) struct Span {
    start: u32,
    end: u32,
    /// The word is the first of its sentence.
    pub first: bool,
    /// Where it stands in the text, with what an apostrophe joins to it.
    source: (u32, u32),
}

/// The words of one or more texts, in one buffer that is overwritten on drop.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Words {
    letters: Zeroizing<String>,
    spans: Vec<Span>,
}

impl Words {
    /// All words of a text.
    pub(crate) fn of(text: &str) -> Self {
        let mut words = Self::default();
        words.add(text, usize::MAX);
        words
    }

    pub(crate) fn clear(&mut self) {
        zeroize::Zeroize::zeroize(&mut *self.letters);
        self.spans.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The words of a range of word numbers, with whether each begins a sentence.
    pub(crate) fn range(&self, range: Range<usize>) -> impl Iterator<Item = (&str, bool)> + Clone {
        let spans = self.spans.get(range).unwrap_or_default();
        spans.iter().map(|span| {
            (
                self.letters.get(span.start as usize..span.end as usize).unwrap_or_default(),
                span.first,
            )
        })
    }

    /// The bytes of the text in which a word stands, with what an apostrophe joins to it.
    pub(crate) fn source(&self, number: usize) -> Range<usize> {
        let (start, end) = self.spans.get(number).map_or((0, 0), |span| span.source);
        start as usize..end as usize
    }

    /// All words, each by itself.
    pub(crate) fn to_list(&self) -> Vec<Word> {
        self.range(0..self.len()).map(|(word, _)| word.into()).collect()
    }

    /// Adds the words of `text`, at most `limit` of them.
    pub(crate) fn add(&mut self, text: &str, limit: usize) {
        reserve(
            &mut self.letters,
            text.len().min(limit.saturating_mul(4 * LONGEST_WORD)) * 3 / 2 + 16,
        );
        let limit = self.spans.len().saturating_add(limit);
        let mut first = true;
        let mut chars = text.char_indices().peekable();
        while let Some(&(at, c)) = chars.peek() {
            if self.spans.len() >= limit {
                return;
            }
            if !is_letter(c) {
                first |= matches!(c, '.' | '!' | '?' | '\n' | '。' | '！' | '？' | '¿' | '¡');
                chars.next();
                continue;
            }
            let (start, before) = (self.letters.len(), self.spans.len());
            let (mut plain, mut unspaced, mut count) = (true, false, 0);
            while let Some(&(_, c)) = chars.peek()
                && (is_letter(c) || (count > 0 && is_combining_mark(c)))
            {
                chars.next();
                count += 1;
                if count > LONGEST_WORD {
                    continue;
                }
                if c.is_ascii() {
                    self.letters.push(c.to_ascii_lowercase());
                } else {
                    plain = false;
                    unspaced |= is_unspaced(c);
                    self.letters.extend(c.to_lowercase());
                }
            }
            if !plain {
                self.normalize(start);
            }
            let is_elided = ELIDED.contains(&self.letters.get(start..).unwrap_or_default());
            if unspaced {
                self.pairs(start, first)
            } else {
                self.push(start, self.letters.len(), first)
            }
            first = false;
            if !is_elided {
                skip_suffix(&mut chars);
            }
            let end = chars.peek().map_or(text.len(), |(end, _)| *end);
            let added = self.spans.iter_mut().skip(before);
            added.for_each(|span| span.source = (at as u32, end as u32));
        }
    }

    /// The same words without accents.
    pub(crate) fn folded(&self) -> Self {
        // A letter becomes at most eighteen, in a word of at most 64.
        let mut folded = Self::default();
        for ((word, first), span) in self.range(0..self.len()).zip(&self.spans) {
            reserve(&mut folded.letters, word.len() * 18);
            let start = folded.letters.len();
            match word.is_ascii() {
                true => folded.letters.push_str(word),
                false => folded.letters.extend(fold(word)),
            }
            folded.push(start, folded.letters.len(), first);
            if let Some(last) = folded.spans.last_mut() {
                last.source = span.source;
            }
        }
        folded
    }

    fn push(&mut self, start: usize, end: usize, first: bool) {
        if let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end))
            && start < end
        {
            self.spans.push(Span { start, end, first, source: (0, 0) });
        }
    }

    /// Writes composed and decomposed, wide and narrow forms of the letters from `start` on in one way.
    fn normalize(&mut self, start: usize) {
        let word = self.letters.get(start..).unwrap_or_default();
        if unicode_normalization::is_nfkc_quick(word.chars())
            == unicode_normalization::IsNormalized::Yes
        {
            return;
        }
        // One character may become eighteen.
        let mut normal = Zeroizing::new(String::with_capacity(LONGEST_WORD * 4));
        normal.extend(word.nfkc().take(LONGEST_WORD));
        self.letters.truncate(start);
        reserve(&mut self.letters, normal.len());
        self.letters.push_str(&normal);
    }

    /// Overlapping pairs of characters, for scripts without spaces between words. Japanese changes from one script to
    /// another between words.
    fn pairs(&mut self, start: usize, mut first: bool) {
        let word = self.letters.get(start..).unwrap_or_default();
        let letters: Vec<(usize, usize, bool)> = word
            .char_indices()
            .map(|(at, c)| (start + at, start + at + c.len_utf8(), is_hiragana(c)))
            .collect();
        for run in letters.chunk_by(|before, after| before.2 == after.2) {
            for pair in run.windows(run.len().min(2)) {
                if let (Some((from, ..)), Some((_, to, _))) = (pair.first(), pair.last()) {
                    self.push(*from, *to, first);
                    first = false;
                }
            }
        }
    }
}

/// Skips what an apostrophe joins to a word: the `t` of "don't", the `s` of "Anna's".
fn skip_suffix(chars: &mut Peekable<CharIndices<'_>>) {
    while matches!(chars.peek(), Some((_, '\'' | '’'))) {
        let mut ahead = chars.clone();
        ahead.next();
        if !ahead.peek().is_some_and(|(_, c)| is_letter(*c)) {
            return;
        }
        while ahead.peek().is_some_and(|(_, c)| is_letter(*c)) {
            ahead.next();
        }
        *chars = ahead;
    }
}

fn is_letter(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphanumeric() } else { c.is_alphanumeric() }
}

/// Whether `c` is of a script that is written without spaces between words.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{3134f}')
}

/// Whether `c` is of the script in which Japanese writes endings and particles.
pub(crate) fn is_hiragana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{309f}')
}
