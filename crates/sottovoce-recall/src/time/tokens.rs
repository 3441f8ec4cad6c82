//! The words and numbers of a text, and dates in digits.

use std::ops::Range;

use jiff::civil::Date;
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};
use zeroize::Zeroizing;

/// A run of letters and digits.
pub(super) struct Token {
    /// In lower case, without accents.
    pub folded: Zeroizing<String>,
    /// Where it stands in the text.
    pub range: Range<usize>,
    /// Only blanks and joining signs lie between it and the one before.
    pub is_joined: bool,
    /// The single character between it and the one before.
    before: Option<char>,
}

/// Divides a text in lower case into at most `most` tokens.
pub(super) fn tokens(text: &str, most: usize) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    let mut chars = text.char_indices().peekable();
    let mut gap: (usize, usize, bool, Option<char>) = (0, 0, false, None);
    while let Some((at, c)) = chars.next() {
        if !c.is_alphanumeric() {
            let (all, signs, joins, _) = gap;
            let is_sign = matches!(c, '.' | ',' | '-' | '/' | '\'' | '’');
            gap = (
                all + 1,
                signs + usize::from(is_sign),
                joins && (is_sign || (c.is_whitespace() && c != '\n')),
                (all == 0).then_some(c),
            );
            continue;
        }
        if found.len() >= most {
            break;
        }
        let mut end = at + c.len_utf8();
        while let Some((next, c)) =
            chars.next_if(|(_, c)| c.is_alphanumeric() || is_combining_mark(*c))
        {
            end = next + c.len_utf8();
        }
        found.push(Token {
            folded: fold(text.get(at..end).unwrap_or_default()),
            range: at..end,
            is_joined: gap.2 && gap.0 <= 3 && gap.1 <= 1,
            before: gap.3,
        });
        gap = (0, 0, true, None);
    }
    found
}

/// A word without accents.
pub(super) fn fold(word: &str) -> Zeroizing<String> {
    // A letter without its accents is no longer than with them.
    let mut folded = Zeroizing::new(String::with_capacity(word.len() * 3));
    for c in word.nfd().filter(|c| !is_combining_mark(*c)) {
        match c {
            'ß' => folded.push_str("ss"),
            c => folded.push(c),
        }
    }
    folded
}

/// Year, month and day as far as they are named.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct DateParts {
    pub year: Option<i16>,
    pub month: Option<i8>,
    pub day: Option<i8>,
}

/// A date in digits that begins with the first token, and how many tokens it takes: "2023-05-07", "2023-05",
/// "7.5.2023", "7/5/2023" and, if `short`, "7.5.".
pub(super) fn digits(text: &str, tokens: &[Token], short: bool) -> Option<(DateParts, usize)> {
    let number = |at: usize, lengths: Range<usize>| -> Option<i16> {
        let token = tokens.get(at)?;
        let is_digits = token.folded.bytes().all(|byte| byte.is_ascii_digit());
        (is_digits && lengths.contains(&token.folded.len())).then(|| token.folded.parse().ok())?
    };
    let sign = |at: usize| tokens.get(at).and_then(|token| token.before);
    let valid = |year: i16, month: i16, day: i16| -> Option<DateParts> {
        let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
        Date::new(year, month, day).ok()?;
        Some(DateParts { year: Some(year), month: Some(month), day: Some(day) })
    };
    if let (Some(year), Some('-'), Some(month)) = (number(0, 4..5), sign(1), number(1, 1..3)) {
        if let (Some('-'), Some(day)) = (sign(2), number(2, 1..3)) {
            return Some((valid(year, month, day)?, 3));
        }
        let parts = valid(year, month, 1)?;
        return Some((DateParts { day: None, ..parts }, 2));
    }
    let (first, second) = (number(0, 1..3)?, number(1, 1..3)?);
    let point = sign(1).filter(|sign| matches!(sign, '.' | '/'))?;
    if let (Some('.' | '/'), Some(year)) = (sign(2), number(2, 4..5)) {
        // Months stand first where the second number cannot be one.
        return Some((valid(year, second, first).or_else(|| valid(year, first, second))?, 3));
    }
    let end = tokens.get(1)?.range.end;
    if short && point == '.' && text.get(end..)?.starts_with('.') {
        // A leap year has every day.
        let parts = valid(2000, second, first)?;
        return Some((DateParts { year: None, ..parts }, 2));
    }
    None
}
