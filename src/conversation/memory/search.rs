//! The function by which a model searches what was said earlier.

use std::fmt::Write;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::tools::{Arguments, ToolOutput, ToolScope};
use crate::context::confidence::is_doubted;
use crate::context::recall::{RecallHit, RecallQuery};
use crate::conversation::Conversation;
use crate::error::Result;
use crate::message::quote::quoted;
use crate::message::{ChatMessage, ChatRole, Source, texts};
use crate::model::render::said_when;
use crate::store::StoredMessage;

/// The most messages that a search returns.
const HITS: usize = 8;
/// One message of a search result gets at most this fraction of a call's bytes.
const PART: usize = 4;

impl Conversation {
    pub(super) async fn search_memory(
        &self,
        arguments: &Arguments,
        sight: &ToolScope<'_>,
    ) -> Result<ToolOutput> {
        let words = arguments.text("words").filter(|words| !words.trim().is_empty());
        let Some(words) = words else {
            return Ok(texts::SEARCH_USAGE.to_owned().into());
        };
        let hits = self.recalled(&words, sight.utterance).await?;
        let mut told = Zeroizing::new(String::with_capacity(sight.most + 64));
        let mut numbers = Vec::new();
        for hit in &hits {
            let line = line(&hit.stored.message, sight.most / PART);
            if told.len() + line.len() > sight.most {
                break;
            }
            told.push_str(&line);
            numbers.push(hit.stored.seq.to_string());
        }
        if numbers.is_empty() {
            return Ok(texts::NOTHING_FOUND.to_owned().into());
        }
        Ok(ToolOutput { told: told.to_string(), kept: texts::messages_found(&numbers) })
    }

    /// Finds the messages that fit the words best. Leaves out what no prompt would hold: messages that were cleared,
    /// pruned, expired or heard with low confidence, and those of other threads.
    async fn recalled(&self, words: &str, utterance: Option<u64>) -> Result<Vec<RecallHit>> {
        let profile = self.store.profile().await?;
        let now = self.clock.now();
        let after = self.parts.prompts.started_after();
        let wanting = Arc::clone(&profile);
        let is_wanted = move |seq: u64| {
            seq > after
                && utterance.is_none_or(|utterance| seq < utterance)
                && wanting.may_be_context(seq)
        };
        let may_see = |stored: &StoredMessage| profile.is_context(stored, now.timestamp());
        let mut query = RecallQuery::new(words, now.clone(), HITS * PART);
        query.thread = self.thread();
        let mut found = Vec::new();
        for hit in self.parts.recall.find(&query, is_wanted, may_see).await?.hits {
            let is_doubted = match self.parts.prompts.min_confidence {
                Some(least) => is_doubted(&*self.store, &hit.stored, least).await?,
                None => false,
            };
            // A message that only stands near one with the words says nothing of them.
            let why = &hit.hit.why;
            let is_about = why.alike > 0. || why.words.iter().any(|(_, share)| *share >= 1.0);
            if is_about && !is_doubted && found.len() < HITS {
                found.push(hit);
            }
        }
        Ok(found)
    }
}

/// One line for a message, with at most `most` bytes of its text.
fn line(message: &ChatMessage, most: usize) -> String {
    let from = match (message.role, message.speaker()) {
        (ChatRole::System, _) => texts::NOTE,
        _ if message.source().0 == Source::Document => "document",
        (ChatRole::User, Some(speaker)) => speaker,
        (role, _) => role.as_str(),
    };
    let mut words = quoted(&message.content);
    if words.len() > most {
        let end = (0..=most).rev().find(|end| words.is_char_boundary(*end));
        words.truncate(end.unwrap_or(0));
        words.push('…');
    }
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(line, "- {}, {}: {words}", said_when(message), quoted(from));
    line
}
