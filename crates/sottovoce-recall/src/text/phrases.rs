//! Phrases of the word lists, and where they stand in a text.

/// A phrase: words, `_` for one word or none, and `~` for any ending.
pub(crate) struct Phrase(Vec<Part>);

enum Part {
    Word(Box<str>),
    Beginning(Box<str>),
    Gap,
}

impl Phrase {
    /// Reads a phrase. Apostrophes cut words as they do in texts.
    pub(crate) fn new(text: &str) -> Self {
        Self(
            text.split_whitespace()
                .map(|word| {
                    let plain = word.trim_end_matches('~');
                    let kept = plain.split(['\'', '’']).next().unwrap_or_default();
                    match (word, plain.len() < word.len()) {
                        ("_", _) => Part::Gap,
                        (_, true) => Part::Beginning(kept.into()),
                        (_, false) => Part::Word(kept.into()),
                    }
                })
                .collect(),
        )
    }

    /// Whether `words` begin with this phrase.
    pub(crate) fn begins<'a>(&self, words: impl Iterator<Item = &'a str> + Clone) -> bool {
        begins(&self.0, words)
    }

    /// How many words it takes at the beginning of `words`, gaps left empty where possible.
    pub(crate) fn length_at<'a>(
        &self,
        words: impl Iterator<Item = &'a str> + Clone,
    ) -> Option<usize> {
        let gaps = self.0.iter().filter(|part| matches!(part, Part::Gap)).count();
        (self.0.len() - gaps..=self.0.len()).find(|length| self.begins(words.clone().take(*length)))
    }

    /// Whether this phrase stands anywhere in `words`.
    pub(crate) fn is_in<'a>(&self, mut words: impl Iterator<Item = &'a str> + Clone) -> bool {
        loop {
            if self.begins(words.clone()) {
                return true;
            }
            if words.next().is_none() {
                return false;
            }
        }
    }

    /// A word that every text with this phrase holds or begins a word with.
    pub(crate) fn first_word(&self) -> &str {
        match self.0.first() {
            Some(Part::Word(word) | Part::Beginning(word)) => word,
            _ => "",
        }
    }
}

fn begins<'a>(parts: &[Part], mut words: impl Iterator<Item = &'a str> + Clone) -> bool {
    let Some((part, rest)) = parts.split_first() else { return true };
    match part {
        Part::Word(part) => words.next().is_some_and(|word| word == &**part) && begins(rest, words),
        Part::Beginning(part) => {
            words.next().is_some_and(|word| word.starts_with(&**part)) && begins(rest, words)
        }
        Part::Gap => {
            if begins(rest, words.clone()) {
                return true;
            }
            words.next().is_some() && begins(rest, words)
        }
    }
}
