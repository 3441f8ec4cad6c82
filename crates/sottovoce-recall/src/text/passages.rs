//! Passages: a turn's sentences, packed to at most 25 words each.

use std::ops::Range;

use super::words::is_unspaced;

/// The words of a passage at most.
pub(crate) const LONGEST: usize = 25;
/// Passages of one message that are indexed. The rest of a longer message is not found.
pub(crate) const MOST: usize = 512;
/// Bytes after which a word without spaces is cut.
const LONGEST_UNIT: usize = 256;

/// The byte ranges of a text's passages, in order.
pub(crate) fn split(text: &str) -> Vec<Range<usize>> {
    let is_short = text.len() <= LONGEST_UNIT * 4 && !text.chars().any(is_unspaced);
    if is_short && text.split_whitespace().nth(LONGEST).is_none() {
        return std::iter::once(0..text.len()).collect();
    }
    let mut passages = Vec::new();
    let mut packed: Option<(Range<usize>, usize)> = None;
    let mut sentence: Vec<(Range<usize>, usize)> = Vec::new();
    for unit in Units::new(text) {
        let ends = unit.ends_sentence;
        if let Some(range) = unit.range {
            sentence.push((range, unit.weight));
        }
        // A long sentence is cut; its passages stand alone.
        let weight: usize = sentence.iter().map(|(_, weight)| weight).sum();
        if weight > LONGEST && sentence.len() > 1 {
            let last = sentence.pop();
            if let Some((range, _)) = packed.take() {
                passages.push(range);
            }
            passages.extend(join(&sentence));
            sentence.clear();
            sentence.extend(last);
        }
        if ends && !sentence.is_empty() {
            pack(&mut passages, &mut packed, &mut sentence);
        }
        if passages.len() >= MOST {
            passages.truncate(MOST);
            return passages;
        }
    }
    if !sentence.is_empty() {
        pack(&mut passages, &mut packed, &mut sentence);
    }
    if let Some((range, _)) = packed {
        passages.push(range);
    }
    if passages.is_empty() {
        passages.push(0..0);
    }
    passages.truncate(MOST);
    passages
}

/// The byte ranges of a text's sentences, in order.
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let (mut sentences, mut sentence) = (Vec::new(), Vec::new());
    for unit in Units::new(text) {
        sentence.extend(unit.range.map(|range| (range, unit.weight)));
        if unit.ends_sentence {
            sentences.extend(join(&sentence));
            sentence.clear();
        }
    }
    sentences.extend(join(&sentence));
    sentences
}

fn join(sentence: &[(Range<usize>, usize)]) -> Option<Range<usize>> {
    Some(sentence.first()?.0.start..sentence.last()?.0.end)
}

/// Adds a sentence to the passage that is being packed, or starts the next one with it.
fn pack(
    passages: &mut Vec<Range<usize>>,
    packed: &mut Option<(Range<usize>, usize)>,
    sentence: &mut Vec<(Range<usize>, usize)>,
) {
    let weight: usize = sentence.iter().map(|(_, weight)| weight).sum();
    let Some(range) = join(sentence) else { return };
    sentence.clear();
    match packed {
        Some((passage, words)) if *words + weight <= LONGEST => {
            passage.end = range.end;
            *words += weight;
        }
        _ => passages.extend(packed.replace((range, weight)).map(|(range, _)| range)),
    }
}

/// What a passage is packed from: a word between blanks, or the end of a sentence.
struct Unit {
    range: Option<Range<usize>>,
    weight: usize,
    ends_sentence: bool,
}

struct Units<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Units<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Units<'_> {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        let rest = self.text.get(self.at..)?;
        if rest.is_empty() {
            return None;
        }
        let mut start = None;
        let (mut unspaced, mut ended) = (0usize, false);
        let mut end = rest.len();
        for (offset, c) in rest.char_indices() {
            let is_end = matches!(c, '.' | '!' | '?' | '\n' | '。' | '！' | '？');
            let is_full = unspaced >= 2 * LONGEST
                || start.is_some_and(|start| offset - start >= LONGEST_UNIT);
            if (ended && !is_end) || (c.is_whitespace() && c != '\n' && start.is_some()) || is_full
            {
                end = offset;
                break;
            }
            ended |= is_end;
            if !c.is_whitespace() && start.is_none() {
                start = Some(offset);
            }
            unspaced += usize::from(is_unspaced(c));
        }
        let unit = rest.get(start.unwrap_or(end)..end).unwrap_or_default().trim_end();
        let from = self.at + start.unwrap_or(end);
        self.at += end;
        let range = (!unit.is_empty()).then(|| from..from + unit.len());
        Some(Unit { range, weight: (unspaced / 2).max(1), ends_sentence: ended })
    }
}
