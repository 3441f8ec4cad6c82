//! Finds card and telephone numbers in a text.

use std::ops::Range;

use regex_lite::Regex;

/// A text with one ASCII byte for each character, so that patterns need to know only one form of digits, dashes and
/// spaces.
pub(super) struct Plain {
    bytes: String,
    /// The byte positions of each character, and the text's end.
    starts: Vec<usize>,
}

impl Plain {
    pub(super) fn of(text: &str) -> Self {
        let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        Self { bytes: text.chars().map(plain).collect(), starts }
    }

    fn in_text(&self, range: Range<usize>) -> Option<Range<usize>> {
        Some(*self.starts.get(range.start)?..*self.starts.get(range.end)?)
    }

    /// Whether a number or a date from before `start` continues there.
    fn continues(&self, start: usize) -> bool {
        let before = self.bytes.get(..start).unwrap_or_default();
        before
            .strip_suffix(['.', '-', '/'])
            .is_some_and(|b| b.ends_with(|c: char| c.is_ascii_digit()))
    }

    fn digit_beside(&self, range: &Range<usize>) -> bool {
        let digit = |at: Option<usize>| {
            at.and_then(|at| self.bytes.as_bytes().get(at)).is_some_and(u8::is_ascii_digit)
        };
        digit(range.start.checked_sub(1)) || digit(Some(range.end))
    }
}

fn plain(c: char) -> char {
    /// The zeros of Arabic-Indic, Persian, Devanagari and full-width digits.
    const ZEROS: [u32; 4] = [0x660, 0x6f0, 0x966, 0xff10];
    let digit = |zero: u32| u32::from(c).checked_sub(zero).and_then(|n| char::from_digit(n, 10));
    match c {
        c if c.is_ascii() => c,
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{ff0d}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200b}' | '\u{202f}' | '\u{3000}' => ' ',
        _ => ZEROS.into_iter().find_map(digit).unwrap_or('?'),
    }
}

/// Finds card numbers: 13 to 19 digits with a valid check digit (ISO/IEC 7812-1) that begin and end with a group of
/// digits. All groups except the last have at least four digits, or all have the same number, as when someone
/// dictates digit by digit. Other groupings are too often telephone numbers side by side.
pub(super) fn cards(plain: &Plain, rows: &Regex) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for row in rows.find_iter(&plain.bytes) {
        let digits: Vec<(usize, u32)> = row
            .as_str()
            .char_indices()
            .filter_map(|(at, c)| Some((row.start() + at, c.to_digit(10)?)))
            .collect();
        let mut from = 0;
        while from < digits.len() {
            let card = (13..=19).rev().find_map(|length| {
                let window = digits.get(from..from + length)?;
                let range = window.first()?.0..window.last()?.0 + 1;
                let is_card = !plain.digit_beside(&range)
                    && is_grouped_as_cards_are(window)
                    && luhn(window.iter().map(|(_, digit)| *digit));
                is_card.then_some((length, range))
            });
            from += card.as_ref().map_or(1, |(length, _)| *length);
            found.extend(card.and_then(|(_, range)| plain.in_text(range)));
        }
    }
    found
}

/// Finds telephone numbers: 7 to 15 digits (ITU-T E.164) without the prefix, in one of the given forms, and not
/// dates. If a match contains more than the number, such as a following postcode, it is shortened group by group.
pub(super) fn phones(plain: &Plain, forms: &Regex, dates: &Regex) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(form) = forms.find_at(&plain.bytes, from) {
        let mut range = form.range();
        while range.len() > 7 && !is_phone(plain, &range, forms, dates) {
            range.end = shorter(plain, &range);
        }
        if range.len() > 7 && is_phone(plain, &range, forms, dates) {
            from = range.end;
            found.extend(plain.in_text(range));
        } else {
            from = form.start() + 1;
        }
    }
    found
}

fn is_phone(plain: &Plain, range: &Range<usize>, forms: &Regex, dates: &Regex) -> bool {
    let text = plain.bytes.get(range.clone()).unwrap_or_default();
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    (7..=17).contains(&digits)
        && !plain.digit_beside(range)
        && !plain.continues(range.start)
        && !dates.is_match(text)
        && forms.find(text).is_some_and(|form| form.len() == text.len())
}

/// The end of the second last group of digits.
fn shorter(plain: &Plain, range: &Range<usize>) -> usize {
    let text = plain.bytes.get(range.clone()).unwrap_or_default();
    let without = text.trim_end_matches(|c: char| c.is_ascii_digit());
    range.start + without.trim_end_matches(|c: char| !c.is_ascii_digit()).len()
}

fn is_grouped_as_cards_are(digits: &[(usize, u32)]) -> bool {
    let groups: Vec<usize> =
        digits.chunk_by(|before, after| after.0 == before.0 + 1).map(<[_]>::len).collect();
    let long = groups.split_last().is_none_or(|(_, others)| others.iter().all(|len| *len >= 4));
    long || groups.windows(2).all(|pair| pair.first() == pair.last())
}

fn luhn(digits: impl DoubleEndedIterator<Item = u32>) -> bool {
    let sum: u32 = digits
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, digit) {
            (0, digit) => digit,
            (_, digit) if digit > 4 => digit * 2 - 9,
            (_, digit) => digit * 2,
        })
        .sum();
    sum.is_multiple_of(10)
}
