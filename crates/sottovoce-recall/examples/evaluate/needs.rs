//! Whether utterances that need nothing bring nothing in, and questions bring something in.

use std::error::Error;

use sottovoce_recall::{Index, Language, Question};

use super::corpus::Conversation;

/// Of so many utterances, how many bring something in.
#[derive(Clone, Copy, Default)]
pub(crate) struct Recalled {
    pub(crate) asked: usize,
    pub(crate) recalled: usize,
}

impl Recalled {
    pub(crate) fn percent(&self) -> f64 {
        100. * self.recalled as f64 / self.asked.max(1) as f64
    }

    fn add(&mut self, index: &mut Index, question: &Question) {
        let bar = index.min_score(question);
        let best = index.rank(question, |_| true, 1);
        self.asked += 1;
        self.recalled += usize::from(best.first().is_some_and(|hit| hit.score >= bar));
    }
}

/// The utterances that need nothing, asked of every conversation, and the conversations' own questions. `utterances`
/// are one a line, under lines such as `[de]`; lines with `#` say nothing.
pub(crate) fn measure(
    conversations: &[Conversation],
    utterances: &str,
) -> Result<[Recalled; 2], Box<dyn Error>> {
    let [mut idle, mut needed] = [Recalled::default(); 2];
    for conversation in conversations {
        let mut index = conversation.index(false);
        let asked = conversation.asked(&index)?;
        for (language, text) in lines(utterances) {
            let mut asked = asked.clone();
            asked.language = language;
            idle.add(&mut index, &Question::new(text, &asked));
        }
        for asking in conversation.answerable() {
            needed.add(&mut index, &Question::new(&asking.q, &asked));
        }
    }
    Ok([idle, needed])
}

fn lines(utterances: &str) -> impl Iterator<Item = (Language, &str)> {
    let mut language = Language::default();
    utterances.lines().filter(|line| !line.starts_with('#')).filter_map(move |line| {
        let code = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Some(code) = code {
            language = Language::from_code(code).unwrap_or_default();
        }
        code.is_none().then_some((language, line))
    })
}
