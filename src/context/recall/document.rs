//! Documents in which something was found. What they say comes into a prompt only if the question asks for them.

use std::collections::HashMap;

use sottovoce_recall::alike;
use zeroize::Zeroizing;

use super::results::{RecallHit, RecallQuery};
use super::{meaning, text};
use crate::error::Result;
use crate::message::Source;
use crate::message::source::SCHEME;
use crate::store::{ConversationStore, artifact_references, blocking};

/// How much a document's name, or the words about it, must mean what a question asks for.
const ASKED_FOR: f32 = 0.2;

/// A document in which something was found.
pub(super) struct Document {
    /// Its name; empty if it has none.
    pub(super) name: Zeroizing<String>,
    /// What was said about it when it came.
    about: Zeroizing<String>,
    /// Whether the question says a word of its name or of what was said about it, or means something like it.
    pub(super) is_asked_for: bool,
}

/// The documents in which the hits stand, by the numbers of their messages. What people and the assistant said stands in
/// none.
///
/// # Errors
/// Those of the encoder's thread.
pub(super) async fn documents(
    store: &dyn ConversationStore,
    query: &RecallQuery<'_>,
    hits: &[RecallHit],
) -> Result<HashMap<u64, Document>> {
    let mut found = Vec::new();
    for hit in hits {
        found.extend(hit.document(store).await.map(|document| (hit.hit.clone(), document)));
    }
    if found.is_empty() {
        return Ok(HashMap::new());
    }
    let copy = |text: &str| Zeroizing::new(text.to_owned());
    let (asked, earlier) = (copy(query.text), query.earlier.first().map(|text| copy(text)));
    blocking(move || {
        let meant = meaning::of_question(&asked, earlier.as_deref().map(String::as_str));
        let judged = found.into_iter().map(|(hit, mut document)| {
            document.is_asked_for = [&document.name, &document.about].into_iter().any(|text| {
                let means = || Some(alike(&meant.as_ref()?.vector, &meaning::of(text)?));
                !hit.why.marks(text).is_empty()
                    || !text.is_empty() && means().is_some_and(|means| means >= ASKED_FOR)
            });
            (hit.seq, document)
        });
        Ok(judged.collect())
    })
    .await
}

impl RecallHit {
    /// Where what fits comes from, in words: an artifact that the message refers to is a document.
    pub fn source(&self) -> String {
        match self.hit.passage.end > self.stored.message.content.len() {
            true => Source::Document.to_string(),
            false => self.stored.message.source_in_words(),
        }
    }

    /// The document in which the passage stands: the message, or an artifact that it refers to.
    async fn document(&self, store: &dyn ConversationStore) -> Option<Document> {
        let own = &self.stored.message.content;
        let (source, name) = self.stored.message.source();
        let at = self.hit.passage.start;
        if source != Source::Document && self.hit.passage.end <= own.len() {
            return None;
        }
        let mut document = Document {
            name: Zeroizing::new(name.to_owned()),
            about: Zeroizing::default(),
            is_asked_for: false,
        };
        let whole = text::whole(store, &self.stored).await.ok().flatten();
        let beside = whole.iter().flat_map(|whole| &whole.artifacts);
        let id = beside.take_while(|(_, from)| *from <= at).last().map(|(id, _)| &**id);
        if let Some(id) = id.or_else(|| artifact_references(own).next()) {
            let words = own.split_whitespace().filter(|word| !word.contains(SCHEME));
            document.about.push_str(&words.collect::<Vec<_>>().join(" "));
            let opened = store.artifact_store()?.open_artifact(id).await.ok().flatten();
            if let Some(contents) = opened {
                document.name.push_str(&contents.artifact().name);
            }
        }
        Some(document)
    }
}
