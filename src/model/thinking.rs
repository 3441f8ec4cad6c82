//! Removes a model's thoughts from its answer.

use std::mem;

/// How thoughts begin, and how they end.
const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];
/// The marks of models that write each part of an answer into a channel. Only the channel `final` is spoken.
const START: &str = "<|start|>assistant";
const CHANNEL: &str = "<|channel|>";
const FINAL: &str = "final";
const MESSAGE: &str = "<|message|>";
/// What follows the words of a channel.
const ENDS: [&str; 5] = ["<|end|>", "<|return|>", "<|call|>", "<|start|>", CHANNEL];

/// Removes thoughts from an answer as it comes. Servers that know a thinking model send its thoughts separately. Others
/// leave them in the text: between tags at its beginning, or in a channel. Some templates write the opening tag into the
/// prompt, so that the answer has the closing one only. What stands before that was spoken already; see
/// [`was_thought`](Self::was_thought).
#[derive(Debug, Default)]
pub(crate) struct ThinkingFilter {
    at: At,
    /// White space at the beginning, which is spoken unless thoughts follow.
    lead: String,
    /// Text that is held back because it may be part of a tag.
    held: String,
    /// The last character that was spoken.
    last: Option<char>,
    was_thought: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum At {
    #[default]
    Beginning,
    /// In thoughts that end with this.
    Thinking(&'static str),
    /// Right after the thoughts, where white space is dropped.
    Between,
    /// In words without thoughts before them. A closing tag may still show that they were thoughts.
    Doubting,
    Speaking,
    /// At the name of a channel.
    Channel,
    /// Between the name of the spoken channel and its words.
    Message,
    /// In the words of the spoken channel.
    Final,
}

/// What is left of a text after a step.
enum Step<'a> {
    Goes(&'a str),
    /// More text must come first.
    Waits(&'a str),
}

impl ThinkingFilter {
    /// The text of a piece that is to be spoken. Ask [`was_thought`](Self::was_thought) before using it.
    pub(crate) fn remove(&mut self, piece: &str) -> String {
        if self.at == At::Speaking {
            return piece.to_owned();
        }
        let held = mem::take(&mut self.held) + piece;
        let (mut rest, mut said) = (held.as_str(), String::new());
        loop {
            match self.step(rest, &mut said) {
                Step::Goes(left) => rest = left,
                Step::Waits(left) => {
                    left.clone_into(&mut self.held);
                    return said;
                }
            }
        }
    }

    /// Whether all that was spoken before the last piece turns out to be thoughts. It cannot be taken back, but is no part
    /// of the answer. Answers yes once.
    pub(crate) fn was_thought(&mut self) -> bool {
        mem::take(&mut self.was_thought)
    }

    /// Whether the model is thinking now.
    pub(crate) fn is_thinking(&self) -> bool {
        matches!(self.at, At::Thinking(_) | At::Channel)
    }

    /// The text held back when the answer ended: it did not become a tag.
    pub(crate) fn rest(self) -> String {
        match self.at {
            At::Beginning => self.lead + &self.held,
            At::Thinking(_) | At::Channel => String::new(),
            _ => self.held,
        }
    }

    fn step<'a>(&mut self, rest: &'a str, said: &mut String) -> Step<'a> {
        match self.at {
            At::Beginning | At::Between => self.begin(rest, said),
            At::Thinking(end) => match rest.split_once(end) {
                Some((_, after)) => {
                    self.at = if end == CHANNEL { At::Channel } else { At::Between };
                    Step::Goes(after)
                }
                None => Step::Waits(unfinished(rest, end)),
            },
            At::Channel => match rest.strip_prefix(FINAL) {
                Some(after) => {
                    self.at = At::Message;
                    Step::Goes(after)
                }
                None if FINAL.starts_with(rest) => Step::Waits(rest),
                None => {
                    self.at = At::Thinking(CHANNEL);
                    Step::Goes(rest)
                }
            },
            At::Message if rest.len() < MESSAGE.len() && MESSAGE.starts_with(rest) => {
                Step::Waits(rest)
            }
            At::Message => {
                self.at = At::Final;
                Step::Goes(rest.strip_prefix(MESSAGE).unwrap_or(rest))
            }
            At::Final => self.find_end(rest, said),
            At::Doubting => self.doubt(rest, said),
            At::Speaking => {
                said.push_str(rest);
                Step::Waits("")
            }
        }
    }

    /// At the beginning of the answer, or behind thoughts: more thoughts, or words.
    fn begin<'a>(&mut self, rest: &'a str, said: &mut String) -> Step<'a> {
        let begun = rest.trim_start();
        let space = rest.len() - begun.len();
        if self.at == At::Beginning {
            self.lead.push_str(rest.get(..space).unwrap_or_default());
        }
        let opened = TAGS.iter().find_map(|(open, end)| Some((begun.strip_prefix(open)?, *end)));
        if let Some((thought, end)) = opened {
            self.at = At::Thinking(end);
            return Step::Goes(thought);
        }
        if let Some(after) = begun.strip_prefix(START) {
            return Step::Goes(after);
        }
        if let Some(after) = begun.strip_prefix(CHANNEL) {
            self.at = At::Channel;
            return Step::Goes(after);
        }
        let mut opens = TAGS.iter().map(|(open, _)| *open).chain([START, CHANNEL]);
        if opens.any(|open| open.starts_with(begun)) {
            return Step::Waits(begun);
        }
        if self.at == At::Between {
            self.at = At::Speaking;
        } else {
            self.at = At::Doubting;
            self.last = self.lead.chars().next_back();
            said.push_str(&mem::take(&mut self.lead));
        }
        Step::Goes(begun)
    }

    /// In words that no thoughts came before.
    fn doubt<'a>(&mut self, rest: &'a str, said: &mut String) -> Step<'a> {
        let (before, tag) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
        self.say(before, said);
        // Who speaks about a tag quotes it.
        let is_quoted = self.last.is_some_and(|last| "`'\"“‘„«".contains(last));
        let ended = TAGS.iter().find_map(|(_, end)| tag.strip_prefix(end));
        if let Some(after) = ended.filter(|_| !is_quoted) {
            said.clear();
            self.was_thought = true;
            self.at = At::Between;
            return Step::Goes(after);
        }
        if TAGS.iter().any(|(open, _)| tag.starts_with(open)) {
            self.at = At::Speaking;
            return Step::Goes(tag);
        }
        let is_begun = |whole: &str| whole.len() > tag.len() && whole.starts_with(tag);
        if TAGS.iter().any(|(open, end)| is_begun(open) || is_begun(end)) {
            return Step::Waits(tag);
        }
        let (bracket, after) = tag.split_at(1);
        self.say(bracket, said);
        Step::Goes(after)
    }

    /// In the words of the spoken channel.
    fn find_end<'a>(&mut self, rest: &'a str, said: &mut String) -> Step<'a> {
        let (before, mark) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
        said.push_str(before);
        if let Some((end, after)) =
            ENDS.iter().find_map(|end| Some((*end, mark.strip_prefix(end)?)))
        {
            self.at = if end == CHANNEL { At::Channel } else { At::Thinking(CHANNEL) };
            return Step::Goes(after);
        }
        if ENDS.iter().any(|end| end.starts_with(mark)) {
            return Step::Waits(mark);
        }
        let (bracket, after) = mark.split_at(1);
        said.push_str(bracket);
        Step::Goes(after)
    }

    fn say(&mut self, words: &str, said: &mut String) {
        self.last = words.chars().next_back().or(self.last);
        said.push_str(words);
    }
}

/// The words of a whole answer without the thoughts that a server left in them. See the
/// [model's own](super::ReplyPart::Thinking).
pub fn without_thoughts(answer: &str) -> String {
    let mut thoughts = ThinkingFilter::default();
    let said = thoughts.remove(answer);
    said + &thoughts.rest()
}

/// The end of a text that may be the beginning of a tag.
fn unfinished<'a>(text: &'a str, tag: &str) -> &'a str {
    let starts = (1..tag.len()).rev().filter_map(|length| tag.get(..length));
    let start = starts.into_iter().find(|start| text.ends_with(start)).unwrap_or_default();
    text.get(text.len() - start.len()..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spoken(pieces: &[&str]) -> String {
        let mut thoughts = ThinkingFilter::default();
        let mut said = String::new();
        for piece in pieces {
            let words = thoughts.remove(piece);
            if thoughts.was_thought() {
                said.clear();
            }
            said += &words;
        }
        said += &thoughts.rest();
        said
    }

    #[test]
    fn thoughts_are_not_spoken_and_all_else_is() {
        assert_eq!(spoken(&["<think>Hm, rain</think>\n\nIt rains."]), "It rains.");
        assert_eq!(spoken(&["  <think></think>It rains.</think>"]), "It rains.</think>");
        assert_eq!(spoken(&["It <think>rains</think>."]), "It <think>rains</think>.");
        assert_eq!(spoken(&["\n It rains."]), "\n It rains.");
        assert_eq!(spoken(&["<thi"]), "<thi");
        assert_eq!(spoken(&["<think>never closed"]), "");
        assert_eq!(spoken(&["<think>a</think>\n<think>secret</think> Yes."]), "Yes.");
        assert_eq!(spoken(&["<think>a</think>", " <", "b"]), "<b");
        assert_eq!(spoken(&["<thinking>Hm</think></thinking> It rains."]), "It rains.");
    }

    #[test]
    fn a_closing_tag_alone_shows_that_all_before_it_were_thoughts() {
        assert_eq!(spoken(&["The user asks.\n</think>\n\nIt rains."]), "It rains.");
        assert_eq!(spoken(&["Hm</", "think", "ing>It rains."]), "It rains.");
        assert_eq!(spoken(&["</think>It rains."]), "It rains.");
        for words in ["Thoughts end with `</think>`.", "\"</think>\" ends them.", "a < b </thin"] {
            assert_eq!(spoken(&[words]), words);
        }
        let mut thoughts = ThinkingFilter::default();
        assert_eq!((thoughts.remove("Hm"), thoughts.was_thought()), ("Hm".to_owned(), false));
        assert_eq!(
            (thoughts.remove("</think>Yes"), thoughts.was_thought()),
            ("Yes".to_owned(), true)
        );
        assert!(!thoughts.was_thought());
    }

    #[test]
    fn only_the_final_channel_is_spoken() {
        let analysis = "<|channel|>analysis<|message|>The user asks.<|end|>";
        let last = "<|start|>assistant<|channel|>final<|message|>It rains.<|return|>";
        assert_eq!(spoken(&[analysis, last]), "It rains.");
        assert_eq!(spoken(&[last]), "It rains.");
        assert_eq!(spoken(&["<|channel|>analysisHm<|channel|>finalIt rains."]), "It rains.");
        assert_eq!(spoken(&["<|channel|>final<|message|>1 <2 <|x"]), "1 <2 <|x");
        assert_eq!(spoken(&[analysis]), "");
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_pieces_are_cut(
            whole in "( ){0,2}(<think>|<thinking>|<\\|channel\\|>final|<\\|channel\\|>x)?[a-z<>/ ]{0,12}(</think>|<\\|channel\\|>final<\\|message\\|>|<\\|end\\|>)?( ){0,2}[a-zé<]{0,8}",
            cuts in prop::collection::vec(0usize..60, 0..8),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| whole.is_char_boundary(*cut)).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).filter_map(|pair| whole.get(pair[0]..pair[1])).collect();
            prop_assert_eq!(spoken(&pieces), spoken(&[&whole]));
        }
    }
}
