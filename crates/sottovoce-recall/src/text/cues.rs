//! Cues: what a passage says besides its words. Someone speaks of themselves, names a time, a number or a name.

use super::{language::Language, lists::lists, words::Words};

const ME: u8 = 1;
const TIME: u8 = 2;
const TIMES: u8 = 4;
const NUMBER: u8 = 8;
const NAME: u8 = 16;
const STANDING: u8 = 32;

/// The cues of one passage.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Cues(pub(crate) u8);

impl Cues {
    /// Looks for cues in the words of a passage and in its `text`.
    pub(crate) fn of(
        words: &Words,
        range: std::ops::Range<usize>,
        text: &str,
        language: Language,
    ) -> Self {
        let (mut cues, mut times) = (0, 0);
        for (word, _) in words.range(range.clone()) {
            let traits = lists().traits(word);
            let is_number = word.chars().all(char::is_numeric);
            cues |= ME * u8::from(traits.is_me(language));
            times += u8::from(times < 2 && (is_number || traits.is_time(language)));
            cues |= NUMBER * u8::from(is_number || traits.is_number(language));
        }
        cues |= match times {
            0 => 0,
            1 => TIME,
            _ => TIME | TIMES,
        };
        // German writes every noun with a capital letter.
        cues |= NAME * u8::from(holds_name(text, language != Language::German));
        cues |= STANDING * u8::from(is_standing(words, range, language));
        Self(cues)
    }

    /// The speaker speaks of themselves.
    pub(crate) fn is_me(self) -> bool {
        self.0 & ME != 0
    }

    /// Words of time and numbers: none, one, or two and more.
    pub(crate) fn times(self) -> u8 {
        u8::from(self.0 & TIME != 0) + u8::from(self.0 & TIMES != 0)
    }

    pub(crate) fn has_number(self) -> bool {
        self.0 & NUMBER != 0
    }

    /// The passage holds a name or a title in quotes.
    pub(crate) fn has_name(self) -> bool {
        self.0 & NAME != 0
    }

    /// The passage states a wish or a fact that holds from then on.
    pub(crate) fn is_standing(self) -> bool {
        self.0 & STANDING != 0
    }

    pub(crate) fn without_standing(self) -> Self {
        Self(self.0 & !STANDING)
    }
}

/// Whether a passage states a standing wish, such as "always", "I prefer" or "allergic".
fn is_standing(words: &Words, range: std::ops::Range<usize>, language: Language) -> bool {
    let lists = lists().of(language);
    range.clone().any(|at| {
        let Some((word, span)) = words.get(at) else { return false };
        let follows = |at: usize| words.range(at..range.end).map(|(word, _)| word);
        let first = |at: usize, word: &str| {
            lists
                .standing_first
                .iter()
                .any(|phrase| phrase.first_word() == word && phrase.begins(follows(at)))
        };
        lists
            .standing
            .iter()
            .any(|phrase| phrase.first_word() == word && phrase.begins(follows(at)))
            || (span.first && first(at, word))
            || (span.first
                && lists.lead.contains(&word)
                && words.get(at + 1).is_some_and(|(next, _)| first(at + 1, next)))
    })
}

/// Whether a capital letter within a sentence or a pair of quotes names something.
fn holds_name(text: &str, by_capitals: bool) -> bool {
    let (mut before, mut last) = (' ', ' ');
    let mut chars = text.chars().peekable();
    let (mut straight, mut curly) = (None::<usize>, None::<usize>);
    while let Some(c) = chars.next() {
        let follows = before.is_lowercase() || matches!(before, ',' | ';' | ':' | '\'' | '"');
        if by_capitals
            && follows
            && last == ' '
            && c.is_uppercase()
            && chars.peek().is_some_and(|next| next.is_alphabetic())
        {
            return true;
        }
        match c {
            '"' if straight.is_some_and(|letters| letters >= 3) => return true,
            '"' => straight = Some(0),
            '“' => curly = Some(0),
            '”' if curly.is_some_and(|letters| letters >= 3) => return true,
            '”' => curly = None,
            _ => {
                straight = straight.map(|letters| letters + 1);
                curly = curly.map(|letters| letters + 1);
            }
        }
        before = last;
        last = if c.is_whitespace() { ' ' } else { c };
    }
    false
}
