//! Whose turns a question asks for.

use super::view::{TurnView, View};
use crate::{question::Question, secret::Word, text::words::Words};

/// How surely a question that names nobody asks for what the asker said.
const ASKER: f32 = 0.5;

/// Whose turns a question asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Whose {
    Anyones,
    /// A speaker's, by number plus one, and how surely.
    Speaker(u32, f32),
}

impl Whose {
    /// How surely a turn is asked for; negative for one of another speaker, 0 if the question says nothing.
    pub(super) fn of(self, turn: &TurnView) -> f32 {
        match self {
            Self::Anyones => 0.,
            Self::Speaker(speaker, sure) if turn.speaker == speaker => sure,
            Self::Speaker(_, sure) => -sure,
        }
    }

    pub(super) fn asked(question: &Question, view: &View) -> Self {
        let is_named = |name: &&Word| {
            let first = words_of(name).into_iter().next();
            first.is_some_and(|first| question.all.contains(&first))
        };
        let mut named = (1..).zip(&view.speakers).filter(|(_, name)| is_named(name));
        match (named.next(), named.next()) {
            (Some((number, _)), None) => Self::Speaker(number, 1.),
            (Some(_), Some(_)) => Self::Anyones,
            (None, _) => {
                let asker = question.speaker.as_ref();
                let known = view.speakers.iter().position(|name| Some(name) == asker);
                known.map_or(Self::Anyones, |known| Self::Speaker(known as u32 + 1, ASKER))
            }
        }
    }
}

/// All words of the speakers' names. They do not rank: everyone is named in most sessions.
pub(super) fn name_words(view: &View) -> Vec<Word> {
    view.speakers.iter().flat_map(words_of).collect()
}

fn words_of(name: &Word) -> Vec<Word> {
    let mut words = Words::default();
    words.add(name.as_str(), 8);
    words.to_list()
}
