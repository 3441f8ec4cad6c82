//! Languages: which one a message is in, and the stem of a word in it.

use std::borrow::Cow;

use frostem::{Algorithm, Stemmer};
use zeroize::Zeroize;

use super::{stop_words::is_stop_word, words::Words};
use crate::secret::{Word, overwrite_freed};

/// A language that has stop words, a stemmer and a grammar of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Language {
    /// English.
    #[default]
    English,
    /// German.
    German,
    /// French.
    French,
    /// Spanish.
    Spanish,
}

/// Words of a text that are looked at to tell its language.
const LOOKED_AT: usize = 200;
/// Letters of the longest word that is stemmed.
const LONGEST_STEMMED: usize = 40;

impl Language {
    /// All languages, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::English, Self::German, Self::French, Self::Spanish];

    pub(crate) fn number(self) -> usize {
        match self {
            Self::English => 0,
            Self::German => 1,
            Self::French => 2,
            Self::Spanish => 3,
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The language with this code, such as `de` or `de-AT`.
    pub fn from_code(code: &str) -> Option<Self> {
        let code = code.split(['-', '_']).next().unwrap_or_default();
        let code = code.to_ascii_lowercase();
        Self::ALL.into_iter().find(|language| language.code() == code)
    }

    /// The two letters of ISO 639-1.
    pub fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
            Self::French => "fr",
            Self::Spanish => "es",
        }
    }

    /// The language whose stop words are most frequent in a text, or `otherwise` if no language has clearly more.
    pub(crate) fn of(words: &Words, otherwise: Self) -> Self {
        let mut counts = [0usize; 4];
        for (word, _) in words.range(0..words.len().min(LOOKED_AT)) {
            for (count, language) in counts.iter_mut().zip(Self::ALL) {
                *count += usize::from(is_stop_word(word, language));
            }
        }
        let count = |language: Self| counts.get(language.number()).copied().unwrap_or_default();
        let best =
            Self::ALL.into_iter().max_by_key(|language| (count(*language), *language == otherwise));
        match best {
            Some(best) if count(best) >= 2 && count(best) > count(otherwise) => best,
            _ => otherwise,
        }
    }

    /// The stem of a word in lower case.
    pub(crate) fn stem(self, word: &str) -> Word {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        if is_number || word.len() > LONGEST_STEMMED {
            return word.into();
        }
        let stemmer = Stemmer::new(match self {
            Self::English => Algorithm::English,
            Self::German => Algorithm::German,
            Self::French => Algorithm::French,
            Self::Spanish => Algorithm::Spanish,
        });
        match stemmer.stem(word) {
            Cow::Borrowed(stem) => stem.into(),
            Cow::Owned(mut letters) => {
                let stem = letters.as_str().into();
                letters.zeroize();
                // Every step of the stemmer freed a copy.
                overwrite_freed(word.len());
                stem
            }
        }
    }
}
