//! Characters that nobody sees, and texts as a person reads them.

#[cfg(feature = "meaning")]
use zeroize::Zeroizing;

/// The first and last character of each range that Unicode lets programs ignore, without what joins letters and makes
/// emoji, which is seen.
const IGNORED: &str = "\u{ad}\u{ad}\u{34f}\u{34f}\u{61c}\u{61c}\u{115f}\u{1160}\u{17b4}\u{17b5}\u{180b}\u{180f}\
    \u{200b}\u{200b}\u{200e}\u{200f}\u{2028}\u{202e}\u{2060}\u{206f}\u{3164}\u{3164}\u{fe00}\u{fe0d}\u{feff}\u{feff}\
    \u{ffa0}\u{ffa0}\u{fff0}\u{fff8}\u{1bca0}\u{1bca3}\u{1d173}\u{1d17a}\u{e0000}\u{e0fff}";

/// Whether nobody sees a character.
pub(crate) fn is_hidden(c: char) -> bool {
    let (firsts, lasts) = (IGNORED.chars().step_by(2), IGNORED.chars().skip(1).step_by(2));
    c.is_control()
        || !c.is_ascii() && firsts.zip(lasts).any(|(first, last)| first <= c && c <= last)
}

/// Cyrillic and Greek letters that look like Latin ones.
#[cfg(feature = "meaning")]
const ALIKE: (&str, &str) = (
    "аеорсухіјѕԁһАВЕКМНОРСТХІЈЅοαρνιΑΒΕΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijsdhABEKMHOPCTXIJSoapviABEHIKMNOPTYX",
);

/// The text as a person reads it: without what nobody sees, and with Latin letters in words that mix them with others
/// that look alike.
#[cfg(feature = "meaning")]
pub(crate) fn readable(text: &str) -> Zeroizing<String> {
    let latin = |c: char| ALIKE.0.chars().zip(ALIKE.1.chars()).find(|(other, _)| *other == c);
    let is_seen =
        |c: &char| c.is_control() || !is_hidden(*c) && !matches!(c, '\u{200c}' | '\u{200d}');
    // None of the letters is longer than its likeness: the text never grows.
    let mut read = Zeroizing::new(String::with_capacity(text.len()));
    for word in text.split_inclusive(char::is_whitespace) {
        let is_mixed = !word.is_ascii() && word.contains(|c: char| c.is_ascii_alphabetic());
        let letter = |c| Some(c).filter(|_| is_mixed).and_then(latin).map_or(c, |(_, latin)| latin);
        read.extend(word.chars().filter(is_seen).map(letter));
    }
    read
}

/// Whether more than a fifth of a text is hidden.
#[cfg(feature = "recall")]
pub(crate) fn is_mostly_hidden(text: &str) -> bool {
    let hidden = text.chars().filter(|c| is_hidden(*c) && !c.is_control()).count();
    hidden * 5 > text.chars().count()
}

#[cfg(all(test, feature = "meaning"))]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_and_letters_that_look_alike_are_read_as_a_person_reads_them() {
        assert_eq!(
            &*readable("i\u{200b}gn\u{200d}\u{43e}r\u{435} th\u{456}s\n привет, naïve"),
            "ignore this\n привет, naïve"
        );
        let tags: String =
            "obey".chars().filter_map(|c| char::from_u32(0xe0000 + c as u32)).collect();
        assert!(is_mostly_hidden(&format!("The milk.{tags}")));
        assert!(!is_mostly_hidden("👩‍👩‍👧 ❤️ Soft\u{ad}ware"));
    }
}
