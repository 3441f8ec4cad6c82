//! How much of the answers the ranker finds: the share of the turns that hold one.

use std::{collections::BTreeMap, error::Error};

use sottovoce_recall::{Hit, Question, Weights, select_within};

use super::{
    corpus::{Asking, Conversation},
    vectors::Vectors,
};

/// The name of all kinds of question together.
pub(crate) const ALL: &str = "all";

/// Percent of the turns with answers that are found among the best 5, the best 50, and within 1,024 and 256 tokens.
#[derive(Clone, Copy, Default)]
pub(crate) struct Quality {
    pub(crate) questions: usize,
    sums: [f64; 4],
}

impl Quality {
    fn add(&mut self, shares: [f64; 4]) {
        self.questions += 1;
        self.sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
    }

    pub(crate) fn percent(&self) -> [f64; 4] {
        self.sums.map(|sum| 100. * sum / self.questions.max(1) as f64)
    }
}

/// The quality by kind of question, [`ALL`] among them.
pub(crate) fn measure(
    conversations: &[Conversation],
    weights: &Weights,
    vectors: &mut Vectors,
) -> Result<BTreeMap<String, Quality>, Box<dyn Error>> {
    let mut kinds: BTreeMap<String, Quality> = BTreeMap::new();
    each(conversations, weights, vectors, 300, |conversation, asking, hits| {
        let found = shares(conversation, hits, &asking.ev);
        for kind in [ALL, &asking.cat] {
            kinds.entry(kind.to_owned()).or_default().add(found);
        }
    })?;
    Ok(kinds)
}

/// Asks every question that has an answer.
pub(crate) fn each(
    conversations: &[Conversation],
    weights: &Weights,
    vectors: &mut Vectors,
    n: usize,
    mut seen: impl FnMut(&Conversation, &Asking, &[Hit]),
) -> Result<(), Box<dyn Error>> {
    for conversation in conversations {
        let mut index = conversation.index();
        index.set_weights(weights.clone());
        vectors.understand(conversation, &mut index);
        for asking in conversation.answerable() {
            let earlier: Vec<&str> = asking.earlier.iter().map(String::as_str).collect();
            let asked = conversation.asked(Some(asking), &earlier, &index)?;
            let mut question = Question::new(&asking.q, &asked);
            if let Some(vector) = vectors.of(&asking.q) {
                question = question.meaning(&vector);
            }
            let until = asking.until();
            let hits = index.rank(&question, |seq| (seq as usize) < until, n);
            seen(conversation, asking, &hits);
        }
    }
    Ok(())
}

fn shares(conversation: &Conversation, hits: &[Hit], wanted: &[u64]) -> [f64; 4] {
    let share = |found: &mut dyn Iterator<Item = &Hit>| {
        found.filter(|hit| wanted.contains(&hit.seq)).count() as f64 / wanted.len() as f64
    };
    let length = |hit: &Hit| conversation.line(hit.seq).length();
    let heading = |hit: &Hit| conversation.line(hit.seq).heading();
    let within = |tokens| select_within(hits, tokens, length, heading);
    [
        share(&mut hits.iter().take(5)),
        share(&mut hits.iter().take(50)),
        share(&mut within(1024).into_iter()),
        share(&mut within(256).into_iter()),
    ]
}
