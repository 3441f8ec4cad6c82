//! Cuts a text into the tokens that the model knows, as SentencePiece does with a Unigram model.

use unicode_normalization::UnicodeNormalization;
use zeroize::Zeroizing;

use crate::{Error, data::Reader};

/// Ids of the tokens that stand for no text.
pub(crate) const START: u32 = 0;
pub(crate) const END: u32 = 1;
const UNKNOWN: u32 = 2;
const SPECIAL: u32 = 3;

/// What a character that no token holds costs more than the unlikeliest token.
const UNKNOWN_PENALTY: f32 = 10.0;

/// Stands for a space in tokens (U+2581).
const SPACE: char = '\u{2581}';

/// The pieces of words that the model knows, sorted by their bytes, each with the logarithm of its probability.
pub(crate) struct Tokens {
    text: Vec<u8>,
    /// Where each piece begins in `text`, and where the last one ends.
    starts: Vec<u32>,
    scores: Vec<f32>,
    unknown_score: f32,
    /// The first piece with each first byte, and the number of pieces.
    first: [u32; 257],
}

impl Tokens {
    pub(crate) fn read(data: &mut Reader, count: usize, coded_bytes: usize) -> Result<Self, Error> {
        let damaged = Error { what: "its tokens are damaged" };
        let mut coded = data.bytes(coded_bytes)?;
        let (mut text, mut starts, mut start) =
            (Vec::with_capacity(coded_bytes * 2), Vec::new(), 0);
        while let [shared, more, rest @ ..] = coded {
            let (more, rest) = rest.split_at_checked(usize::from(*more)).ok_or(damaged.clone())?;
            let end = text.len();
            let shared = start..start + usize::from(*shared);
            if shared.end > end {
                return Err(damaged);
            }
            text.extend_from_within(shared);
            text.extend_from_slice(more);
            starts.push(end as u32);
            (start, coded) = (end, rest);
        }
        if starts.len() != count {
            return Err(damaged);
        }
        starts.push(text.len() as u32);
        let range = data.floats(2)?;
        let &[low, step] = range.as_slice() else { return Err(damaged) };
        let scores =
            data.shorts(count)?.iter().map(|&score| f32::from(score) * step + low).collect();
        let mut tokens =
            Self { text, starts, scores, unknown_score: low - UNKNOWN_PENALTY, first: [0; 257] };
        let first = std::array::from_fn(|byte| {
            partition(count, |i| tokens.piece(i).first().is_some_and(|&b| usize::from(b) < byte))
                as u32
        });
        tokens.first = first;
        Ok(tokens)
    }

    fn piece(&self, index: usize) -> &[u8] {
        let start = self.starts.get(index).copied().unwrap_or_default() as usize;
        let end = self.starts.get(index + 1).copied().unwrap_or_default() as usize;
        self.text.get(start..end).unwrap_or_default()
    }

    pub(crate) fn spelling(&self, id: u32) -> String {
        let Some(index) = id.checked_sub(SPECIAL) else { return "<unk>".to_owned() };
        String::from_utf8_lossy(self.piece(index as usize)).into_owned()
    }

    /// The ids of the likeliest pieces that make up the text, at most `limit` of them.
    pub(crate) fn encode(&self, text: &str, limit: usize) -> Zeroizing<Vec<u32>> {
        let text = normalize(text);
        let bytes = text.as_bytes();
        // The best way to each place: its score, where its last piece begins, and which one that is.
        let nowhere = (f32::NEG_INFINITY, 0, UNKNOWN);
        let mut best = Zeroizing::new(vec![nowhere; bytes.len() + 1]);
        if let Some(first) = best.first_mut() {
            first.0 = 0.0;
        }
        for (start, character) in text.char_indices() {
            let Some(&(score, ..)) = best.get(start) else { break };
            let mut offer = |length: usize, more: f32, id: u32| {
                if let Some(place) = best.get_mut(start + length)
                    && score + more > place.0
                {
                    *place = (score + more, start, id);
                }
            };
            offer(character.len_utf8(), self.unknown_score, UNKNOWN);
            self.prefixes(bytes.get(start..).unwrap_or_default(), |length, index| {
                offer(
                    length,
                    self.scores.get(index).copied().unwrap_or(f32::NEG_INFINITY),
                    index as u32 + SPECIAL,
                );
            });
        }
        // No more pieces than bytes, so that the list never moves.
        let mut ids = Zeroizing::new(Vec::with_capacity(bytes.len()));
        let mut at = bytes.len();
        while at > 0 {
            let Some(&(_, from, id)) = best.get(at) else { break };
            if id != UNKNOWN || ids.last() != Some(&UNKNOWN) {
                ids.push(id);
            }
            at = from;
        }
        ids.reverse();
        ids.truncate(limit);
        ids
    }

    /// Calls `found` with the length and the index of each piece that `bytes` begin with.
    fn prefixes(&self, bytes: &[u8], mut found: impl FnMut(usize, usize)) {
        let Some(&byte) = bytes.first() else { return };
        let place = |at: usize| self.first.get(at).copied().unwrap_or_default() as usize;
        let (mut low, mut high) = (place(usize::from(byte)), place(usize::from(byte) + 1));
        for (depth, &byte) in bytes.iter().enumerate() {
            if depth > 0 {
                let count = high - low;
                low +=
                    partition(count, |i| self.piece(low + i).get(depth).is_none_or(|&b| b < byte));
                let count = high - low;
                high = low
                    + partition(count, |i| {
                        self.piece(low + i).get(depth).is_some_and(|&b| b <= byte)
                    });
            }
            if low == high {
                return;
            }
            if self.piece(low).len() == depth + 1 {
                found(depth + 1, low);
            }
        }
    }
}

/// The first number below `count` for which `before` does not hold, if it holds for all smaller ones.
fn partition(count: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// The text as the tokens spell it: compatibility forms composed (NFKC), control characters out, a mark for each run of spaces
/// and one before the first word.
fn normalize(text: &str) -> Zeroizing<String> {
    let mut out = Zeroizing::new(String::with_capacity(2 * text.len()));
    let mut pending = true;
    let mut push = |character: char| {
        if character == ' ' {
            pending = true;
        } else {
            if std::mem::take(&mut pending) {
                push_char(&mut out, SPACE);
            }
            push_char(&mut out, character);
        }
    };
    // The model was trained with the wide tilde as it is.
    for (part, between) in
        text.split('～').zip(std::iter::once(false).chain(std::iter::repeat(true)))
    {
        if between {
            push('～');
        }
        part.chars().filter_map(plain).nfkc().for_each(&mut push);
    }
    out
}

/// Adds a character. Growth by itself would leave a copy in freed memory.
fn push_char(text: &mut Zeroizing<String>, character: char) {
    if text.capacity() - text.len() < character.len_utf8() {
        let mut grown = Zeroizing::new(String::with_capacity(2 * text.len() + 64));
        grown.push_str(text);
        *text = grown;
    }
    text.push(character);
}

/// A space for what separates words without being seen, nothing for control characters.
fn plain(character: char) -> Option<char> {
    match character {
        '\t'
        | '\n'
        | '\u{c}'
        | '\r'
        | '\u{1680}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'
        | '\u{2029}'
        | SPACE
        | '\u{feff}'
        | '\u{fffd}' => Some(' '),
        '\0'..='\u{1f}' | '\u{7f}' | '\u{8f}' | '\u{9f}' => None,
        other => Some(other),
    }
}
