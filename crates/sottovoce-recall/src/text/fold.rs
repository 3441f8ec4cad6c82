//! Words without accents, letter case and compatibility forms, for exact search.

use unicode_normalization::{UnicodeNormalization, char::canonical_combining_class};

/// The characters of a word in lower case and without accents.
pub(crate) fn fold(word: &str) -> impl Iterator<Item = char> {
    // Upper and lower case, because some letters have a counterpart only in one of them: `ẞ`, `ß` and `SS`, or the
    // two small sigmas, are equal.
    let bare = word.nfkd().filter(|c| !is_accent(*c));
    let lower = bare.flat_map(char::to_lowercase).flat_map(char::to_uppercase);
    let plain = lower.flat_map(char::to_lowercase).filter(|c| !is_accent(*c));
    plain.flat_map(without_stroke).nfc()
}

/// A lower-case letter as people type it whose keyboards lack it. Unicode takes none of these apart, as CLDR's
/// transform Latin-ASCII does.
fn without_stroke(c: char) -> impl Iterator<Item = char> {
    let plain = match c {
        'æ' => "ae",
        'œ' => "oe",
        'þ' => "th",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'ħ' => "h",
        'ŧ' => "t",
        'ŋ' => "n",
        'ı' => "i",
        _ => "",
    };
    plain.chars().chain(plain.is_empty().then_some(c))
}

/// Marks that people leave out when they search: accents, and the points of Hebrew and Arabic. Marks that make
/// another letter stay, such as the voicing of kana and the vowels of Indic scripts.
fn is_accent(c: char) -> bool {
    !c.is_ascii() && matches!(canonical_combining_class(c), 10..=35 | 200..=240)
}
