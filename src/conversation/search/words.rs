//! Query words and their occurrences in a text. Ignores letter case, accents and compatibility forms.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, is_combining_mark};
use zeroize::{Zeroize, Zeroizing};

/// The shortest word, in characters, that is also looked for inside longer words if one word suffices.
const FEWEST_OF_A_PART: usize = 3;

/// The words of a query. A text matches if it contains each of them, in any letter case, with or without accents,
/// even inside a longer word.
pub struct SearchWords(Zeroizing<Vec<String>>);

/// How often one word occurs in a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// As a whole word.
    pub(super) whole: usize,
    /// Inside longer words.
    pub(super) parts: usize,
}

impl SearchWords {
    /// Splits a text at spaces into words without surrounding punctuation. Repeated words count once.
    pub fn new(words: &str) -> Self {
        let mut seen = BTreeSet::new();
        let words = words.split_whitespace().map(|word| {
            let bare = word.trim_matches(is_punctuation);
            folded(if bare.is_empty() { word } else { bare }).to_string()
        });
        Self(Zeroizing::new(
            words.filter(|word| !word.is_empty() && seen.insert(word.clone())).collect(),
        ))
    }

    /// Whether there are no words.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a text contains all of them. False if there are no words.
    pub fn are_in(&self, text: &str) -> bool {
        let text = folded(text);
        !self.is_empty() && self.0.iter().all(|word| text.contains(word.as_str()))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// How often each word occurs in a text that was [folded](fold).
    pub(super) fn count<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Counted> + 'a {
        self.0.iter().map(|word| {
            let mut counted = Counted::default();
            for (at, found) in text.match_indices(word.as_str()) {
                match stands_alone(text, at, at + found.len()) {
                    true => counted.whole += 1,
                    false => counted.parts += 1,
                }
            }
            counted
        })
    }

    /// For each word, whether it is long enough to be looked for inside longer words.
    pub(super) fn long_enough(&self) -> impl Iterator<Item = bool> + '_ {
        self.0.iter().map(|word| {
            word.chars().nth(FEWEST_OF_A_PART - 1).is_some() || word.chars().any(is_unspaced)
        })
    }

    /// For each word that never occurs as a whole word, the first longer word that contains it.
    pub(super) fn longer(&self, text: &str) -> Vec<Zeroizing<String>> {
        let text = folded(text);
        let longer = self.0.iter().filter_map(|word| {
            let found = || text.match_indices(word.as_str());
            if found().any(|(at, found)| stands_alone(&text, at, at + found.len())) {
                return None;
            }
            let (at, found) = found().next()?;
            Some(Zeroizing::new(word_around(&text, at, at + found.len())?.to_owned()))
        });
        longer.collect()
    }
}

impl std::fmt::Debug for SearchWords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SearchWords").field(&self.0.len()).finish()
    }
}

/// Punctuation around words in sentences. Signs that belong to words, as in `C++`, do not count.
fn is_punctuation(c: char) -> bool {
    matches!(
        c,
        '.' | ','
            | ';'
            | ':'
            | '!'
            | '?'
            | '('
            | ')'
            | '['
            | ']'
            | '"'
            | '\''
            | '…'
            | '¿'
            | '¡'
            | '“'
            | '”'
            | '„'
            | '‘'
            | '’'
            | '«'
            | '»'
            | '。'
            | '、'
            | '！'
            | '？'
            | '「'
            | '」'
    )
}

/// Writes a text without accents, letter case and compatibility forms into reused memory, which is wiped.
pub(super) fn fold(text: &str, into: &mut Zeroizing<String>) {
    into.zeroize();
    if into.capacity() < text.len() {
        *into = Zeroizing::new(String::with_capacity(text.len()));
    }
    if text.is_ascii() {
        into.push_str(text);
        into.make_ascii_lowercase();
        return;
    }
    // Upper and lower case, because some letters have a counterpart only in one of them: `ẞ`, `ß` and `SS`, or the
    // two small sigmas, are equal.
    let bare = text.nfkd().filter(|c| !is_accent(*c));
    let lower = bare.flat_map(char::to_lowercase).flat_map(char::to_uppercase);
    let plain = lower.flat_map(char::to_lowercase).filter(|c| !is_accent(*c));
    for c in plain.nfc() {
        push(c, into);
    }
}

/// Adds a character. If the buffer is full, the text moves and the old memory is wiped.
fn push(c: char, into: &mut Zeroizing<String>) {
    if into.len() + c.len_utf8() > into.capacity() {
        let mut roomier = Zeroizing::new(String::with_capacity(into.capacity() * 2 + 64));
        roomier.push_str(into);
        *into = roomier;
    }
    into.push(c);
}

fn folded(text: &str) -> Zeroizing<String> {
    let mut folded = Zeroizing::default();
    fold(text, &mut folded);
    folded
}

/// Marks that people leave out when they search: accents, and the points of Hebrew and Arabic. Marks that make
/// another letter stay, such as the voicing of kana and the vowels of Indic scripts.
fn is_accent(c: char) -> bool {
    !c.is_ascii() && matches!(canonical_combining_class(c), 10..=35 | 200..=240)
}

/// Whether two neighbouring characters belong to one word.
fn joins(before: char, after: char) -> bool {
    let is_letter = |c: char| (c.is_alphanumeric() || is_combining_mark(c)) && !is_unspaced(c);
    is_letter(before) && is_letter(after)
}

/// Whether a range of the text is not part of a longer word.
fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let (Some(before), Some(found), Some(after)) =
        (text.get(..start), text.get(start..end), text.get(end..))
    else {
        return false;
    };
    let join = |a: Option<char>, b: Option<char>| a.zip(b).is_some_and(|(a, b)| joins(a, b));
    !join(before.chars().next_back(), found.chars().next())
        && !join(found.chars().next_back(), after.chars().next())
}

/// The longer word that contains a range of the text.
fn word_around(text: &str, start: usize, end: usize) -> Option<&str> {
    let (before, found, after) = (text.get(..start)?, text.get(start..end)?, text.get(end..)?);
    let mut next = found.chars().next()?;
    let from = before.char_indices().rev().take_while(|(_, c)| {
        let is_one = joins(*c, next);
        next = *c;
        is_one
    });
    let from = from.last().map_or(start, |(at, _)| at);
    let mut last = found.chars().next_back()?;
    let to = after.char_indices().take_while(|(_, c)| {
        let is_one = joins(last, *c);
        last = *c;
        is_one
    });
    let to = to.last().map_or(end, |(at, c)| end + at + c.len_utf8());
    text.get(from..to)
}

/// Letters of scripts without spaces between words. Any part of such a text may be a word.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_any_letter_case_and_order_and_within_longer_ones() {
        for (words, text) in [
            ("milk bread", "Bread and MILK"),
            ("STRASSE", "Die Straße"),
            ("straße", "DIE STRASSE"),
            ("GROẞ", "gross"),
            ("ΟΔΟΣ", "οδοστρωμα"),
            ("οδος", "ΟΔΟΣ"),
            ("ÉCLAIR", "éclairs"),
            ("天气", "明天的天气怎么样"),
            ("ПОГОДА", "какая погода?"),
            ("  milk\t", "buttermilk"),
        ] {
            assert!(SearchWords::new(words).are_in(text), "{words} in {text}");
        }
        for (words, text) in
            [("milk tea", "milk and bread"), ("", "milk"), (" \n", ""), ("milks", "milk")]
        {
            assert!(!SearchWords::new(words).are_in(text), "{words} not in {text}");
        }
    }

    #[test]
    fn accents_and_forms_of_letters_make_no_difference_but_other_letters_do() {
        for (word, text) in [
            ("cafe", "Café"),
            ("CAFÉ", "cafe\u{301}"),
            ("istanbul", "İSTANBUL"),
            ("ISTANBUL", "ıstanbul"),
            ("naïve", "naive"),
            ("wifi", "ｗｉ\u{fb01}"),
            ("zolty", "z\u{307}o\u{301}ltym"),
            ("السلام", "السَّلَام"),
            ("ガ", "が".replace('が', "カ\u{3099}").as_str()),
        ] {
            assert!(SearchWords::new(word).are_in(text), "{word} in {text}");
        }
        for (word, text) in [("か", "が"), ("कि", "का"), ("가", "각"), ("n", "m")] {
            assert!(!SearchWords::new(word).are_in(text), "{word} not in {text}");
        }
    }

    #[test]
    fn whole_words_are_distinguished_from_parts_of_longer_ones() {
        for (word, text, whole, parts) in [
            ("tea", "Tea for the team, no steamed tea.", 2, 2),
            ("tea", "tea's tea-time", 2, 0),
            ("天气", "明天的天气怎么样", 1, 0),
            ("क", "क्या", 0, 1),
            ("c++", "C++ and c", 1, 0),
            ("tea?", "tea", 1, 0),
        ] {
            let words = SearchWords::new(word);
            let counted: Vec<_> = words.count(&folded(text)).collect();
            assert_eq!(counted, [Counted { whole, parts }], "{word} in {text}");
        }
        let longer = SearchWords::new("tea milk").longer("The TEAM's buttermilk, milk");
        assert_eq!(longer.iter().map(|word| word.as_str()).collect::<Vec<_>>(), ["team"]);
    }

    #[test]
    fn words_that_are_looked_for_are_in_no_debug_output() {
        assert_eq!(format!("{:?}", SearchWords::new("canary bird")), "SearchWords(2)");
    }
}
