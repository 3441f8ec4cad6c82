//! Documents in which something was found. What they say comes into a prompt only if the question asks for them.

use jiff::Timestamp;
use sottovoce_recall::alike;
use zeroize::Zeroizing;

use super::provider::day;
use super::results::{RecallHit, RecallQuery};
use super::{meaning, text};
use crate::error::Result;
use crate::message::source::SCHEME;
use crate::message::{ChatRole, RecallSources, Source, texts};
use crate::store::{ConversationStore, StoredMessage, artifact_references, blocking};

/// How much a document's name, or the words about it, must mean what a question asks for.
const ASKED_FOR: f32 = 0.2;
/// How many documents are considered, so that many of them do not take the place of what was said.
pub(super) const MOST: usize = 4;
/// Bytes of a person's own words beside a document.
const OWN: usize = 400;

/// The hits as they come into a prompt: a document that was asked for speaks in a quotation, never in the line of the person
/// who showed it, and one that was not asked for does not speak.
///
/// # Errors
/// Those of the encoder's thread.
pub(super) async fn quoted(
    store: &dyn ConversationStore,
    (query, now): (&RecallQuery<'_>, Option<Timestamp>),
    sources: RecallSources,
    hits: Vec<RecallHit>,
) -> Result<Vec<RecallHit>> {
    let (mut told, mut documents) = (Vec::<RecallHit>::new(), 0);
    for mut hit in hits {
        let Some([name, about]) = hit.document(store).await else {
            told.push(hit);
            continue;
        };
        documents += 1;
        let is_asked_for = match sources {
            RecallSources::People => false,
            _ if documents > MOST => false,
            RecallSources::Said => is_asked_for(query, &hit, [&name, &about]).await?,
            RecallSources::All => true,
        };
        if is_asked_for {
            hit = hit.quoting(store, &name, now).await;
        } else if hit.stored.message.source().0 == Source::Document {
            continue;
        } else {
            let own = &hit.stored.message.content;
            hit.hit.passage = 0..own.floor_char_boundary(OWN);
        }
        // Two messages may have shown the same document.
        if !told.iter().any(|other| other.stored.message.content == hit.stored.message.content) {
            told.push(hit);
        }
    }
    Ok(told)
}

/// Whether a question says a word of a document's name or of what was said about it, or means something like it.
async fn is_asked_for(
    query: &RecallQuery<'_>,
    found: &RecallHit,
    texts: [&str; 2],
) -> Result<bool> {
    if texts.iter().any(|text| !found.hit.why.marks(text).is_empty()) {
        return Ok(true);
    }
    let copy = |text: &str| Zeroizing::new(text.to_owned());
    let (asked, earlier) = (copy(query.text), query.earlier.first().map(|text| copy(text)));
    let texts = texts.map(copy);
    blocking(move || {
        let meant = meaning::of_question(&asked, earlier.as_deref().map(String::as_str));
        let means = |text: &str| Some(alike(&meant.as_ref()?.vector, &meaning::of(text)?));
        let mut texts = texts.iter().filter(|text| !text.is_empty());
        Ok(texts.any(|text| means(text).is_some_and(|means| means >= ASKED_FOR)))
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

    /// The name of the document in which the passage stands, the message or an artifact that it refers to, and what was said
    /// about that.
    async fn document(&self, store: &dyn ConversationStore) -> Option<[Zeroizing<String>; 2]> {
        let own = &self.stored.message.content;
        let (source, name) = self.stored.message.source();
        if source != Source::Document && self.hit.passage.end <= own.len() {
            return None;
        }
        let (mut name, mut about) = (Zeroizing::new(name.to_owned()), Zeroizing::default());
        let whole = text::whole(store, &self.stored).await.ok().flatten();
        let beside = whole.iter().flat_map(|whole| whole.artifacts.iter().zip(&whole.starts));
        let id = beside.take_while(|(_, from)| **from <= self.hit.passage.start).last();
        let id = id.map(|(id, _)| &**id).or_else(|| artifact_references(own).next());
        if let Some((id, artifacts)) = id.zip(store.artifact_store()) {
            let words = own.split_whitespace().filter(|word| !word.contains(SCHEME));
            about = Zeroizing::new(words.collect::<Vec<_>>().join(" "));
            if let Ok(Some(contents)) = artifacts.open_artifact(id).await {
                name.push_str(&contents.artifact().name);
            }
        }
        Some([name, about])
    }

    /// The same with a quotation from the document of that name in place of the message.
    async fn quoting(
        mut self,
        store: &dyn ConversationStore,
        name: &str,
        now: Option<Timestamp>,
    ) -> Self {
        let words = match self.attached(store).await {
            None => self.excerpt(store).await,
            attached => attached,
        };
        let mut quoted = StoredMessage::clone(&self.stored);
        let words = words.as_deref().unwrap_or(&self.stored.message.content);
        quoted.message = quoted.message.clone().from_source(Source::Document, name);
        quoted.message.content = texts::from_document(name, &day(&self, now), words);
        quoted.message.role = ChatRole::System;
        self.hit.passage = 0..quoted.message.content.len();
        self.stored = quoted.into();
        self
    }
}
