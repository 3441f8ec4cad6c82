//! Stop words: words that stand in most sentences of a language and find nothing.

use std::{collections::HashMap, sync::OnceLock};

use super::{language::Language, words::is_hiragana};

/// "I", "what", "who" and "now" in Japanese.
const JAPANESE: [&str; 5] = ["私", "僕", "何", "誰", "今"];

/// The stop words of all languages, with a bit for each language in which a word is one.
fn stop_words() -> &'static HashMap<&'static str, u8> {
    static WORDS: OnceLock<HashMap<&'static str, u8>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let mut words: HashMap<&'static str, u8> = HashMap::new();
        for language in Language::ALL {
            let list = match language {
                Language::English => include_str!("../../data/stop/en.txt"),
                Language::German => include_str!("../../data/stop/de.txt"),
                Language::French => include_str!("../../data/stop/fr.txt"),
                Language::Spanish => include_str!("../../data/stop/es.txt"),
            };
            for word in list.split_whitespace() {
                *words.entry(word).or_default() |= 1 << language.number();
            }
        }
        words
    })
}

/// Whether a word is a stop word of a language. Japanese writes its endings and particles in hiragana, whatever
/// language the rest of a text is in.
pub(crate) fn is_stop_word(word: &str, language: Language) -> bool {
    word.chars().all(is_hiragana)
        || JAPANESE.contains(&word)
        || stop_words().get(word).is_some_and(|languages| languages >> language.number() & 1 == 1)
}

/// Whether a word says, in any language, that something was told: "what did I tell you yesterday?" asks for the day alone.
pub(crate) fn is_of_saying(word: &str) -> bool {
    has(include_str!("../../data/stop/saying.txt"), word)
}

/// Whether a word names nothing, in any language, such as "anything" and "happened".
pub(crate) fn is_vague(word: &str) -> bool {
    has(include_str!("../../data/stop/vague.txt"), word)
}

fn has(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}

/// The stop words of all languages.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    stop_words().keys().copied()
}
