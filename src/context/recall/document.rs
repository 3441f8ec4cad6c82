//! Documents in which something was found. What they say comes into a prompt only if the question asks for them.

use std::sync::Arc;

use sottovoce_recall::alike;
use zeroize::Zeroizing;

use super::excerpt::{lines, passage};
use super::results::{RecallHit, RecallQuery};
use super::{meaning, text};
use crate::context::recall_sources::RecallSources;
use crate::error::Result;
use crate::message::source::SCHEME;
use crate::message::{ChatRole, Source, texts};
use crate::store::{ConversationStore, artifact_references, blocking};

/// How much what is known of a document must mean what a question asks for.
const ASKED_FOR: f32 = 0.2;
/// How many documents are considered, so that many of them do not take the place of what was said.
pub(super) const MOST: usize = 4;
/// Bytes of a person's own words beside a document.
const OWN: usize = 400;

/// A document in which something was found.
struct Document {
    /// Its name; empty if it has none.
    name: Zeroizing<String>,
    /// Its name, and what was said about it when it came.
    about: Zeroizing<String>,
    words: Zeroizing<String>,
}

/// The hits as they come into a prompt: a document that the question asks for speaks in a quotation, never in the line of the
/// person who showed it, and one that it does not ask for does not speak.
///
/// # Errors
/// Those of the encoder's thread.
pub(super) async fn quoted(
    store: &dyn ConversationStore,
    query: &RecallQuery<'_>,
    sources: RecallSources,
    hits: Vec<RecallHit>,
) -> Result<Vec<RecallHit>> {
    let (mut told, mut documents) = (Vec::<RecallHit>::new(), 0);
    for mut hit in hits {
        if let Some(document) = Document::of(store, &hit).await {
            documents += 1;
            let comes = match sources {
                RecallSources::People => false,
                RecallSources::All if !hit.gives_orders() => true,
                _ => documents <= MOST && document.is_asked_for(query, &hit).await?,
            };
            let message = &hit.stored.message;
            if comes {
                let day = hit.day(Some(query.now.timestamp()));
                let words = texts::from_document(&document.name, &day, &document.words);
                // Two messages may have shown the same document.
                if told.iter().any(|told| told.stored.message.content == words) {
                    continue;
                }
                hit.hit.passage = 0..words.len();
                // Whoever asks for a document hears what it says.
                hit.hit.orders = Some(Vec::new());
                let quotation = message.clone().from_source(Source::Document, &document.name);
                let message = &mut Arc::make_mut(&mut hit.stored).message;
                *message = quotation;
                (message.role, message.content) = (ChatRole::System, words);
            } else if message.source().0 == Source::Document {
                continue;
            } else {
                hit.hit.passage = 0..message.content.floor_char_boundary(OWN);
                let own = hit.hit.passage.end;
                hit.hit.orders.iter_mut().for_each(|orders| orders.retain(|at| at.start < own));
            }
        }
        told.push(hit);
    }
    Ok(told)
}

impl Document {
    /// The document in which the passage stands: the message, or an artifact that it refers to.
    async fn of(store: &dyn ConversationStore, found: &RecallHit) -> Option<Self> {
        let (message, at) = (&found.stored.message, &found.hit.passage);
        let (own, (source, name)) = (&message.content, message.source());
        if source != Source::Document && at.end <= own.len() {
            return None;
        }
        let (mut name, mut about) = (Zeroizing::new(name.to_owned()), Zeroizing::default());
        let whole = text::whole(store, &found.stored).await.ok().flatten();
        let beside = whole.iter().flat_map(|whole| whole.artifacts.iter().zip(&whole.starts));
        let id = beside.take_while(|(_, from)| **from <= at.start).last().map(|(id, _)| &**id);
        let id = id.or_else(|| artifact_references(own).next());
        if let Some((id, artifacts)) = id.zip(store.artifact_store()) {
            let words = own.split_whitespace().filter(|word| !word.contains(SCHEME));
            about = Zeroizing::new(words.collect::<Vec<_>>().join(" "));
            if let Ok(Some(contents)) = artifacts.open_artifact(id).await {
                name.push_str(&contents.artifact().name);
            }
        }
        let words = match whole {
            Some(whole) if at.end > own.len() + 1 => {
                passage(&whole.text, &lines(&whole.text, own.len() + 1, at))
            }
            _ => found.excerpt(store).await.unwrap_or_else(|| own.clone()),
        };
        let about = Zeroizing::new([&name, " ", &about].concat());
        Some(Self { name, about, words: Zeroizing::new(words) })
    }

    /// Whether a question says a word of its name or of what was said about it, or means something like it.
    async fn is_asked_for(&self, query: &RecallQuery<'_>, found: &RecallHit) -> Result<bool> {
        if self.about.trim().is_empty() {
            return Ok(false);
        }
        if !found.hit.why.marks(&self.about).is_empty() {
            return Ok(true);
        }
        let earlier = query.earlier.first().map(|text| Zeroizing::new((*text).to_owned()));
        let (asked, about) = (Zeroizing::new(query.text.to_owned()), self.about.clone());
        blocking(move || {
            let meant = meaning::of_question(&asked, earlier.as_deref().map(String::as_str));
            let means = meant.zip(meaning::of(&about));
            Ok(means.is_some_and(|(meant, about)| alike(&meant.vector, &about) >= ASKED_FOR))
        })
        .await
    }
}

impl RecallHit {
    /// Where what fits comes from, in words: an artifact that the message refers to is a document.
    pub fn source(&self) -> String {
        match self.hit.passage.end > self.stored.message.content.len() {
            true => Source::Document.to_string(),
            false => self.stored.message.source_in_words(),
        }
    }
}
