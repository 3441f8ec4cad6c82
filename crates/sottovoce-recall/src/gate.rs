//! What kind of utterance a question is, and what a turn must score to be worth recalling for it.

use crate::{
    secret::Word,
    text::{language::Language, lists::lists, phrases::Phrase},
};

/// Words that may be left of small talk: "good morning, Bruno".
const LEFT_OF_SMALL_TALK: usize = 1;

/// Passages of the conversations on which the bars were measured.
const MANY_PASSAGES: f32 = 1000.;
/// What any passage may score.
const BASE: f32 = 3.5;
/// What the sense of its words adds to the score of a turn that a question asks for, at least.
const SENSE: f32 = 2.;
/// What its cues and speaker add.
const CUES: f32 = 2.;

/// What is known of a question, and so can add to the scores of what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The meaning of its words, by their vectors.
    Meaning,
    /// Its language, by the word lists.
    Language,
    /// Only its words.
    Words,
}

/// A kind of utterance, told by word lists. The first that fits counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UtteranceKind {
    /// "Thank you", "good morning", "yes".
    SmallTalk,
    /// It asks about the past, or names a time in it: "what did we say about the car?"
    Past,
    /// "Turn on the light", "set a timer for ten minutes".
    Command,
    /// "What time is it?", "how is the weather?"
    Now,
    /// It speaks of the asker: "what is my dog called?"
    Personal,
    /// It asks what everyone may know: "what is the capital of Portugal?"
    General,
    /// Anything else: a question about people, or a statement.
    Other,
}

impl UtteranceKind {
    /// The score that a turn must reach to be worth recalling, among `passages`. A question that `names` a speaker of
    /// the conversation needs less, and so does one of which less is `known`.
    pub(crate) fn min_score(self, names: bool, known: Known, passages: usize) -> f32 {
        let bar = match (self, names) {
            (Self::SmallTalk, _) => return f32::INFINITY,
            (Self::Command | Self::Now, false) => 11.5,
            (Self::Command | Self::Now, true) => 10.,
            (Self::General | Self::Other, false) => 9.75,
            (Self::Past | Self::Personal, false) => 9.5,
            (_, true) => 6.5,
        };
        let bar = match (self, known) {
            (Self::Command | Self::Now, _) | (_, Known::Meaning) => bar,
            (_, Known::Language) => bar - SENSE,
            (_, Known::Words) => bar - SENSE - CUES,
        };
        // Words are less rare in a short conversation, and what they find scores less.
        let share = (passages.max(2) as f32).ln() / MANY_PASSAGES.ln();
        BASE + (bar - BASE) * share.min(1.)
    }

    /// Tells the kind of an utterance by its words. `is_past` says that it names a time in the past.
    pub(crate) fn of(words: &[Word], language: Language, is_past: bool) -> Self {
        let lists = lists().of(language);
        let is_me = || {
            words
                .iter()
                .any(|word| crate::text::lists::lists().traits(word.as_str()).is_me(language))
        };
        if is_small_talk(words, &lists.small_talk, &lists.fillers) {
            Self::SmallTalk
        } else if holds(words, &lists.past) {
            Self::Past
        } else if is_command(words, language) {
            Self::Command
        } else if holds(words, &lists.now) {
            Self::Now
        } else if is_past {
            Self::Past
        } else if is_me() {
            Self::Personal
        } else if holds(words, &lists.general) {
            Self::General
        } else {
            Self::Other
        }
    }

    /// Whether it may take words from what was said before.
    pub(crate) fn may_follow_up(self) -> bool {
        !matches!(self, Self::SmallTalk | Self::Command | Self::Now)
    }
}

fn holds(words: &[Word], phrases: &[Phrase]) -> bool {
    phrases.iter().any(|phrase| phrase.is_in(words.iter().map(Word::as_str)))
}

/// The words after the longest of the phrases that begin them.
fn after<'a>(words: &'a [Word], phrases: &[Phrase]) -> Option<&'a [Word]> {
    let length = |phrase: &Phrase| phrase.length_at(words.iter().map(Word::as_str));
    words.get(phrases.iter().filter_map(length).max()?..)
}

/// Whether phrases of small talk and fillers make up all of it.
fn is_small_talk(words: &[Word], small_talk: &[Phrase], fillers: &[&str]) -> bool {
    let mut rest = words;
    let (mut is_found, mut left) = (false, 0);
    while let Some((first, others)) = rest.split_first() {
        match after(rest, small_talk).filter(|after| after.len() < rest.len()) {
            Some(after) => {
                rest = after;
                is_found = true;
            }
            None => {
                left += usize::from(!fillers.contains(&first.as_str()));
                rest = others;
            }
        }
    }
    is_found && left <= LEFT_OF_SMALL_TALK
}

/// Whether it begins or ends as a command does.
fn is_command(words: &[Word], language: Language) -> bool {
    let lists = lists().of(language);
    let mut rest = words;
    while let Some(after) =
        after(rest, &lists.before_command).filter(|after| after.len() < rest.len())
    {
        rest = after;
    }
    let is_asked = words.first().is_some_and(|word| {
        crate::text::lists::lists().traits(word.as_str()).is_stop(language)
            && rest.len() == words.len()
    });
    lists.commands.iter().any(|phrase| phrase.begins(rest.iter().map(Word::as_str)))
        || (!is_asked
            && rest.len() <= 6
            && rest.last().is_some_and(|last| lists.command_ends.contains(&last.as_str())))
}
