//! Removes a model's thoughts from its answer.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Removes thoughts from the beginning of an answer. Servers that know a thinking model send its thoughts separately.
/// Others leave them in the text, between `<think>` and `</think>`. Thoughts without the opening tag cannot be told
/// from text.
#[derive(Debug, Default)]
pub(crate) struct ThinkingFilter {
    at: At,
    /// Text that is held back because it may be part of a tag.
    held: String,
}

#[derive(Debug, Default, PartialEq)]
enum At {
    #[default]
    Beginning,
    Thinking,
    /// Right after the thoughts, where white space is dropped.
    Between,
    Speaking,
}

impl ThinkingFilter {
    /// The text of a piece that is to be spoken.
    pub(crate) fn remove(&mut self, piece: &str) -> String {
        if self.at == At::Speaking {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        loop {
            if self.at == At::Thinking {
                let Some((_, said)) = self.held.split_once(CLOSE) else {
                    self.forget_thoughts();
                    return String::new();
                };
                self.held = said.to_owned();
                self.at = At::Between;
            }
            let begun = self.held.trim_start();
            if let Some(thought) = begun.strip_prefix(OPEN) {
                self.held = thought.to_owned();
                self.at = At::Thinking;
            } else if OPEN.starts_with(begun) {
                return String::new();
            } else {
                let said = if self.at == At::Between { begun } else { &self.held }.to_owned();
                self.held.clear();
                self.at = At::Speaking;
                return said;
            }
        }
    }

    /// Whether the model is thinking now.
    pub(crate) fn is_thinking(&self) -> bool {
        self.at == At::Thinking
    }

    /// The text held back when the answer ended: it did not become a tag.
    pub(crate) fn rest(self) -> String {
        match self.at {
            At::Beginning => self.held,
            At::Between => self.held.trim_start().to_owned(),
            At::Thinking | At::Speaking => String::new(),
        }
    }

    /// Keeps only what may be the beginning of the closing tag.
    fn forget_thoughts(&mut self) {
        let tags = (1..CLOSE.len()).rev().filter_map(|length| CLOSE.get(..length));
        let tag = tags.into_iter().find(|tag| self.held.ends_with(tag)).unwrap_or_default();
        self.held = tag.to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spoken(pieces: &[&str]) -> String {
        let mut thoughts = ThinkingFilter::default();
        let mut said: String = pieces.iter().map(|piece| thoughts.remove(piece)).collect();
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
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_pieces_are_cut(
            whole in "( ){0,2}(<think>)?[a-z<>/ ]{0,12}(</think>)?( ){0,2}[a-zé<]{0,8}",
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
