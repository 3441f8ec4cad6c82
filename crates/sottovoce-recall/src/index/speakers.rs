//! Whose turns a question asks for.

use super::view::{TurnView, View};
use crate::{
    question::Question,
    secret::Word,
    text::{lists::lists, words::Words},
    turn::Role,
};

/// Whose turns a question asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Whose {
    Anyones,
    /// A speaker's, by number plus one, and how surely.
    Speaker(u32, f32),
    /// A role's.
    Role(Role),
}

impl Whose {
    /// 1 for a turn that is asked for, -1 for another, 0 if the question says nothing.
    pub(super) fn of(self, turn: &TurnView) -> f32 {
        match self {
            Self::Anyones => 0.,
            Self::Speaker(speaker, sure) => {
                if turn.speaker == speaker {
                    sure
                } else {
                    -sure
                }
            }
            Self::Role(role) => {
                if turn.role == role {
                    1.
                } else {
                    -1.
                }
            }
        }
    }

    pub(super) fn asked(question: &Question, view: &View) -> Self {
        let mut named: Vec<(usize, u32)> = Vec::new();
        for (number, name) in (1..).zip(&view.speakers) {
            let first = words_of(name).into_iter().next().unwrap_or_default();
            let forms = short_forms(&first);
            let is_name = |word: &Word| *word == first || forms.contains(word);
            if let Some(place) = question.all.iter().position(is_name) {
                named.push((place, number));
            }
        }
        named.sort_unstable();
        match named.as_slice() {
            [(_, only)] => return Self::Speaker(*only, 1.),
            [(first, number), (second, _)] => {
                let between = question.all.get(first + 1..*second).unwrap_or_default();
                let together = &lists().of(question.language).together;
                let (both, joins) = together.split_at(together.len().min(2));
                let is_joined = between.last().is_none_or(|word| both.contains(&word.as_str()));
                if !is_joined && !question.all.iter().any(|word| joins.contains(&word.as_str())) {
                    return Self::Speaker(*number, 0.5);
                }
            }
            _ => {}
        }
        if !view.has_assistant || question.is_me == question.is_you {
            return Self::Anyones;
        }
        if question.is_you {
            return Self::Role(Role::Assistant);
        }
        let asker = question.speaker.as_ref();
        let known = view.speakers.iter().position(|name| Some(name) == asker);
        known.map_or(Self::Role(Role::User), |known| Self::Speaker(known as u32 + 1, 1.))
    }
}

/// All words of the speakers' names, and their short forms. They do not rank: everyone is named in most sessions.
pub(super) fn name_words(view: &View) -> Vec<Word> {
    let mut found = Vec::new();
    for name in &view.speakers {
        let words = words_of(name);
        found.extend(words.first().map(short_forms).unwrap_or_default());
        found.extend(words);
    }
    found
}

fn words_of(name: &Word) -> Vec<Word> {
    let mut words = Words::default();
    words.add(name.as_str(), 8);
    words.to_list()
}

fn short_forms(name: &Word) -> Vec<Word> {
    crate::text::language::Language::ALL
        .iter()
        .flat_map(|language| &lists().of(*language).short_names)
        .filter(|names| names.first().is_some_and(|long| name.as_str() == *long))
        .flat_map(|names| names.iter().skip(1).map(|short| Word::from(*short)))
        .collect()
}
