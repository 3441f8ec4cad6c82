//! A provider of what was said earlier and fits the utterance, beside the utterance.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use zeroize::Zeroizing;

use super::document::{MOST, quoted};
use super::excerpt::LONGEST;
use super::index::Recall;
use super::meaning;
use super::results::{RecallHit, RecallQuery, ScoreFloor};
use crate::context::recall_sources::RecallSources;
use crate::context::{Context, ContextMessage, ContextProvider, ContextRequest, Placement};
use crate::error::Result;
use crate::message::{ChatRole, Source, texts};
use crate::store::{ConversationStore, Profile, StoredMessage, blocking};

/// The tokens of the messages that are brought in, unless set otherwise.
const TOKENS: usize = 256;
/// How many hits are considered.
const CONSIDERED: usize = 24;
/// How many messages that give orders are listed.
const LISTED: usize = 8;
/// How many messages are read for what was said just before.
const LATELY: usize = 8;

/// Brings in the messages from earlier in the conversation that fit the utterance, with their day and speaker, beside
/// the utterance. Most utterances need none: then it brings in nothing.
///
/// It never brings in what is cleared, pruned, expired, of another thread or scope, or in the prompt already.
pub struct RecallContextProvider {
    recall: Arc<Recall>,
    tokens: usize,
    floor: ScoreFloor,
    sources: RecallSources,
}

impl RecallContextProvider {
    /// A provider of at most 256 tokens from this index.
    pub fn new(recall: Arc<Recall>) -> Self {
        Self { recall, tokens: TOKENS, floor: ScoreFloor::Needed, sources: RecallSources::Said }
    }

    /// Sets the most tokens to bring in, at four characters a token.
    #[must_use]
    pub fn tokens(mut self, tokens: usize) -> Self {
        self.tokens = tokens;
        self
    }

    /// Sets the score that a message must reach; [`ScoreFloor::Needed`] unless set.
    #[must_use]
    pub fn floor(mut self, floor: ScoreFloor) -> Self {
        self.floor = floor;
        self
    }

    /// Sets whose words come in; [`RecallSources::Said`] unless set.
    #[must_use]
    pub fn sources(mut self, sources: RecallSources) -> Self {
        self.sources = sources;
        self
    }
}

#[async_trait]
impl ContextProvider for RecallContextProvider {
    fn placement(&self) -> Placement {
        Placement::NewestTurn
    }

    fn reserved_tokens(&self) -> usize {
        self.tokens
    }

    async fn get_context(&self, request: &ContextRequest<'_>) -> Result<Context> {
        let store = self.recall.store();
        let none = || Context::new(Vec::new(), "nothing said earlier fits");
        if self.tokens == 0
            || !Arc::ptr_eq(store, request.store) && store.scope() != request.store.scope()
        {
            return Ok(none());
        }
        let loaded;
        let profile = match request.profile {
            Some(profile) => profile,
            None => {
                loaded = store.profile().await?;
                &loaded
            }
        };
        let now = store.clock().now();
        let at = request.now.unwrap_or_else(|| now.timestamp());
        let is_context = |stored: &StoredMessage| is_context(stored, request, profile, at);
        let (before, after) = (request.before, request.after);
        let (wanting, offered) = (Arc::clone(profile), request.offered.cloned());
        let is_wanted = move |seq: u64| {
            wanting.may_be_context(seq)
                && is_in_reach(seq, before, after)
                && !offered.as_ref().is_some_and(|offered| offered.contains(&seq))
        };
        let seen = Mutex::new((HashMap::new(), HashSet::new()));
        // “Done.” after each command is worth one line: the first that is found. Of documents the first few are.
        let is_first = |stored: &StoredMessage| {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let (said, documents) = &mut *seen;
            let seq = stored.seq;
            *said.entry(digest(stored)).or_insert(seq) == seq
                && (stored.message.source().0 != Source::Document
                    || documents.contains(&seq)
                    || documents.len() < MOST && documents.insert(seq))
        };
        let may_see = |stored: &StoredMessage| {
            is_context(stored)
                && self.sources.has(stored.message.source().0)
                && !is_same(stored, request.current_prompt)
                && is_first(stored)
        };
        let lately = store.read_thread(request.thread, LATELY).await?;
        let said = lately
            .messages
            .iter()
            .rev()
            .filter(|stored| stored.message.role == ChatRole::User && is_context(stored));
        let earlier: Vec<&str> = said.map(|stored| stored.message.content.as_str()).collect();
        let asked = lately.messages.iter().find(|stored| Some(stored.seq) == request.before);
        let mut query = RecallQuery::new(request.current_prompt, now, CONSIDERED).floor(self.floor);
        query.earlier = &earlier;
        query.thread = request.thread;
        query.no_orders = true;
        query.speaker = asked.and_then(|stored| stored.message.speaker());
        let mut found = self.recall.find(&query, is_wanted, may_see).await?;
        if found.is_follow_up
            && let Some(summary) = profile.summary(request.thread)
        {
            // The summary tells what was said just before.
            found.hits.retain(|hit| !summary.replaces(&hit.stored));
        }
        found.hits.append(&mut found.orders);
        let hits = quoted(&**store, &query, self.sources, found.hits).await?;
        let orders: Vec<RecallHit>;
        (orders, found.hits) = hits.into_iter().partition(RecallHit::gives_orders);
        let mut left_out = Vec::new();
        for order in orders.iter().take(LISTED) {
            left_out.push(shown(&**store, order).await.because(texts::GIVES_ORDERS));
        }
        let mut found = found.within(self.tokens, LONGEST);
        // In the order of the conversation, so that of two statements the later one is read last.
        found.hits.sort_by_key(|found| (found.hit.at, found.hit.seq));
        let mut messages = Vec::with_capacity(found.hits.len());
        for hit in &found.hits {
            let why = |why: &str, by: &str| reason(hit, why, by, request.now);
            let message = shown(&**store, hit).await;
            if hit.hit.orders.is_none() && gives_orders(&message.message().content).await? {
                left_out.push(message.because(texts::GIVES_ORDERS));
                continue;
            }
            let (wordless, role) = (hit.hit.why.without_words(), whose(hit.stored.message.role));
            let name = hit.stored.message.speaker().unwrap_or(role);
            let message = message.because(why(&wordless, role));
            messages.push(message.quoting(why(&hit.hit.why.in_words(), name)));
        }
        let mut context = match messages.is_empty() {
            true => none(),
            false => Context::new(messages, "said earlier"),
        };
        (context.skipped, context.left_out) = (found.skipped, left_out);
        Ok(context.under(texts::RECALLED))
    }
}

/// Whether a message belongs to the context of this prompt.
fn is_context(
    stored: &StoredMessage,
    request: &ContextRequest<'_>,
    profile: &Profile,
    now: Timestamp,
) -> bool {
    is_in_reach(stored.seq, request.before, request.after)
        && stored.message.thread_id.as_deref() == request.thread
        && profile.is_context(stored, now)
}

/// Whether a number is one that this prompt reaches.
fn is_in_reach(seq: u64, before: Option<u64>, after: u64) -> bool {
    before.is_none_or(|utterance| seq < utterance) && seq > after
}

/// Whether a message says the same as the utterance, as a question that was asked before does.
fn is_same(stored: &StoredMessage, utterance: &str) -> bool {
    letters(&stored.message.content).eq(letters(utterance))
}

/// A digest of who said what. It names no words.
fn digest(stored: &StoredMessage) -> u64 {
    let message = &stored.message;
    let mut hasher = DefaultHasher::new();
    (message.role.as_str(), message.speaker(), &*message.content).hash(&mut hasher);
    hasher.finish()
}

/// The letters of a text's words in lower case, with a blank after each word.
fn letters(text: &str) -> impl Iterator<Item = char> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.flat_map(|word| word.chars().flat_map(char::to_lowercase).chain([' ']))
}

/// The message as it is brought in: whole, or its excerpt.
async fn shown(store: &dyn ConversationStore, found: &RecallHit) -> ContextMessage {
    let message = ContextMessage::from(Arc::clone(&found.stored));
    match found.excerpt(store).await {
        Some(excerpt) => message.with_words(&excerpt),
        None => message,
    }
}

/// Whether a message whose meaning is not known yet gives the assistant orders.
async fn gives_orders(words: &str) -> Result<bool> {
    let words = Zeroizing::new(words.to_owned());
    blocking(move || Ok(meaning::gives_orders(&words))).await
}

/// Why a message is brought in: what of it fits, whose it is, and when it was said.
fn reason(found: &RecallHit, why: &str, by: &str, now: Option<Timestamp>) -> String {
    format!("recalled: {why}, by {by}, {}", found.day(now))
}

fn whose(role: ChatRole) -> &'static str {
    match role {
        ChatRole::User => "you",
        ChatRole::Assistant => "the assistant",
        ChatRole::System | ChatRole::Tool => "a document",
    }
}

impl fmt::Debug for RecallContextProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecallContextProvider")
            .field("tokens", &self.tokens)
            .field("floor", &self.floor)
            .finish_non_exhaustive()
    }
}
