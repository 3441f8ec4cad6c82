//! Splits an answer into whole sentences.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use unicode_segmentation::UnicodeSegmentation;

use crate::conversation::turn::answer::{Answer, AnswerEvent, TurnEvent, TurnOutcome};
use crate::error::Result;

/// A sentence is cut after this many characters if it has no end, so that a voice need not wait for it.
const LONG: usize = 300;

/// Words whose full stop does not end a sentence. A wrong guess only costs a pause, so the list is short.
const ABBREVIATIONS: [&str; 16] = [
    "Dr", "Mr", "Mrs", "Ms", "Prof", "St", "Sr", "Jr", "vs", "No", "Nr", "approx", "ca", "bzw",
    "usw", "Mme",
];

/// An [`Answer`] whose text comes in whole sentences, each with the white space after it. Together they are the
/// answer's text. Dropping it stores the sentences that were delivered.
///
/// Sentences end by Unicode's rule (Standard Annex 29), except after titles, initials and numbers.
pub struct Sentences {
    answer: Answer,
    begun: String,
    spoken: usize,
    /// The event that follows the remaining text.
    next: Option<TurnEvent>,
}

impl Answer {
    /// Splits the answer into whole sentences, for a voice to read.
    pub fn sentences(self) -> Sentences {
        Sentences::new(self)
    }
}

impl Sentences {
    pub(super) fn new(mut answer: Answer) -> Self {
        answer.spoken(0);
        Self { answer, begun: String::new(), spoken: 0, next: None }
    }

    /// The next sentence or other event; `None` after the last one.
    ///
    /// # Errors
    /// Those of [`Answer::next`].
    pub async fn next(&mut self) -> Option<Result<AnswerEvent>> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// [`Answer::spoken_up_to`].
    ///
    /// # Errors
    /// Those of [`Answer::spoken_up_to`].
    pub async fn spoken_up_to(self, chars: usize) -> Result<TurnOutcome> {
        self.answer.spoken_up_to(chars).await
    }

    /// The answer, with its utterance.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AnswerEvent>>> {
        loop {
            if let Some(end) = first_sentence(&self.begun) {
                let rest = self.begun.split_off(end);
                return Poll::Ready(Some(Ok(self.deliver(rest))));
            }
            if let Some(next) = self.next.take() {
                if !self.begun.is_empty() {
                    self.next = Some(next);
                    return Poll::Ready(Some(Ok(self.deliver(String::new()))));
                }
                if let Some(piece) = self.answer.deliver(next) {
                    return Poll::Ready(Some(piece));
                }
            }
            if self.answer.is_over() {
                return Poll::Ready(None);
            }
            match ready!(self.answer.poll_turn(cx)) {
                TurnEvent::Answer(AnswerEvent::Text(text)) => self.begun.push_str(&text),
                other => self.next = Some(other),
            }
        }
    }

    fn deliver(&mut self, rest: String) -> AnswerEvent {
        let sentence = std::mem::replace(&mut self.begun, rest);
        self.spoken += sentence.chars().count();
        self.answer.spoken(self.spoken);
        AnswerEvent::Text(sentence)
    }
}

/// The end of the first sentence, if the text shows that it has ended.
fn first_sentence(text: &str) -> Option<usize> {
    let begun: usize = text
        .split_sentence_bounds()
        .scan(0, |end, part| {
            *end += part.len();
            Some((*end, part))
        })
        .find(|(end, part)| *end == text.len() || ends_sentence(part))
        .map_or(0, |(end, _)| end);
    let long = || text.char_indices().nth(LONG).map(|(at, _)| at);
    if (1..text.len()).contains(&begun) {
        return Some(begun);
    }
    let most = text.get(..long()?)?;
    let after_space =
        most.rfind(char::is_whitespace).map(|at| at + 1).filter(|at| most.is_char_boundary(*at));
    Some(after_space.unwrap_or(most.len()))
}

fn ends_sentence(part: &str) -> bool {
    if part.trim().is_empty() {
        return false;
    }
    let Some(before) = part.trim_end().strip_suffix('.') else {
        return true;
    };
    let word = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    let number =
        !word.is_empty() && word == before.trim() && word.chars().all(|c| c.is_ascii_digit());
    !(initial || number || ABBREVIATIONS.contains(&word))
}

impl Stream for Sentences {
    type Item = Result<AnswerEvent>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(cx)
    }
}

debug_shows!(Sentences: answer);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sentences(text: &str) -> Vec<String> {
        let mut rest = text.to_owned();
        let mut found = Vec::new();
        while let Some(end) = first_sentence(&rest) {
            let behind = rest.split_off(end);
            found.push(std::mem::replace(&mut rest, behind));
        }
        found.push(rest);
        found
    }

    #[test]
    fn a_sentence_ends_where_a_voice_would_pause() {
        assert_eq!(sentences("It rains. Take a coat! Bye"), ["It rains. ", "Take a coat! ", "Bye"]);
        assert_eq!(sentences("It is 21.5 degrees, e.g. warm."), ["It is 21.5 degrees, e.g. warm."]);
        assert_eq!(sentences("Ask Dr. Smith. Or J. Doe."), ["Ask Dr. Smith. ", "Or J. Doe."]);
        assert_eq!(sentences("1. Milk\n2. Eggs\nDone."), ["1. Milk\n", "2. Eggs\n", "Done."]);
        assert_eq!(sentences("明天下雨。带伞！好"), ["明天下雨。", "带伞！", "好"]);
        assert_eq!(sentences("In 1984. Then"), ["In 1984. ", "Then"]);
    }

    #[test]
    fn a_sentence_is_handed_out_only_when_it_is_certain() {
        assert_eq!(first_sentence("It rains."), None);
        assert_eq!(first_sentence("It rains. "), None);
        assert_eq!(first_sentence("It rains. T"), Some(10));
    }

    #[test]
    fn a_sentence_without_end_is_cut_between_words() {
        let endless = "word ".repeat(100);
        let cut = first_sentence(&endless).unwrap();
        assert!(cut <= LONG && cut.is_multiple_of(5), "{cut}");
        assert_eq!(first_sentence(&"x".repeat(301)), Some(300));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_between_sentences(text in "([A-Z]?[a-zé。…!?. \n]{0,30}){0,20}") {
            prop_assert_eq!(sentences(&text).concat(), text);
        }
    }
}
