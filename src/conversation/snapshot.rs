//! Saving a conversation's window, and bringing it back.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use unicode_segmentation::UnicodeSegmentation;
use zeroize::Zeroizing;

use super::{Conversation, Mind};
use crate::context::rolling_window;
use crate::error::{Error, Result};
use crate::llm::ReplyPart;
use crate::message::{ChatMessage, ChatRole};
use crate::prompt::Prompt;
use crate::store::{Profile, SavedMessage, Snapshot, StoredMessage, lookup};

const SUMMARIZE: &str = "You summarize conversations. Reply with two to four sentences and nothing else: what was \
    talked about, what was decided or done, and what is still open.";

/// The most sentences of a summary.
const SENTENCES: usize = 4;
/// Where a summary without an end is cut, in characters.
const LONGEST: usize = 1000;
/// How many tokens of a model whose window is not known may be filled with what is to be summarized.
const WINDOW: u32 = 2048;

impl Conversation {
    /// Saves what all threads said within the window, since the last clear, with a summary by the model. Clears
    /// nothing. Where the model fails, or there is none, the summary says so, and the snapshot is saved all the same.
    ///
    /// # Errors
    /// What keeps the messages from being read or the snapshot from being written.
    pub async fn save_snapshot(&self, description: Option<String>) -> Result<Snapshot> {
        let profile = self.store.profile().await?;
        let start = self.window_start(&profile);
        let reading = self.store.read_times(start..Timestamp::MAX).await?;
        let messages: Vec<_> =
            reading.messages.into_iter().filter(|stored| !profile.hides(stored)).collect();
        let now = self.clock.now().timestamp();
        let start = profile.cleared.map_or(start, |cleared| start.max(cleared.at));
        let saved = messages.iter().map(|m| SavedMessage::new(m.seq, m.message.clone()));
        let mut snapshot = Snapshot::new(now, (start, now), saved.collect())?;
        snapshot.description = description;
        match self.summary(&messages).await {
            Ok(Some(summary)) => snapshot.summary = summary,
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "a snapshot has no summary"),
        }
        self.store.save_snapshot(snapshot.clone()).await?;
        Ok(snapshot)
    }

    /// The snapshot of that id, or of the only one that begins so.
    ///
    /// # Errors
    /// [`Error::NoSuchSnapshot`] names those that are most like it.
    pub async fn snapshot(&self, id: &str) -> Result<Snapshot> {
        let profile = self.store.profile().await?;
        let found = self.store.read_snapshot(meant(id, &profile)?).await?;
        found.ok_or_else(|| no_such(id, &profile))
    }

    /// Brings a snapshot's messages back into the window, in this conversation's thread, so that the next turn sees them:
    /// said now, each telling in its metadata where it is from and when it was said. What the thread sees already is
    /// not doubled.
    ///
    /// # Errors
    /// Those of [`snapshot`](Self::snapshot) and of appending.
    pub async fn restore(&self, id: &str) -> Result<Vec<Arc<StoredMessage>>> {
        let snapshot = self.snapshot(id).await?;
        let mut between = self.wait().await;
        self.keep_unfinished(&mut between).await?;
        between.request = None;
        let since = self.window_start(&*self.store.profile().await?);
        self.store.restore(&snapshot.id, since, self.thread.clone(), self.clock.now()).await
    }

    /// Deletes a snapshot for ever.
    ///
    /// # Errors
    /// Those of [`snapshot`](Self::snapshot), but for one that does not open.
    pub async fn delete_snapshot(&self, id: &str) -> Result<String> {
        let profile = self.store.profile().await?;
        let id = meant(id, &profile)?;
        match self.store.read_snapshot(id).await {
            Ok(None) => return Err(no_such(id, &profile)),
            // One that is damaged can go.
            Ok(Some(_)) | Err(Error::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
        self.store.delete_snapshot(id).await?;
        Ok(id.to_owned())
    }

    fn window_start(&self, profile: &Profile) -> Timestamp {
        rolling_window::start(self.clock.now().timestamp(), profile.window(self.window), false)
    }

    /// A few sentences about some messages; `None` where nobody can write them.
    async fn summary(&self, messages: &[Arc<StoredMessage>]) -> Result<Option<String>> {
        let Some(Mind { model, renderer }) = &self.mind else { return Ok(None) };
        if messages.is_empty() {
            return Ok(None);
        }
        let window = model.limits().await?.window.unwrap_or(WINDOW) as usize;
        let user_input = self.newest_words(messages, window / 2);
        let prompt = Prompt {
            system: SUMMARIZE.to_owned(),
            context: Vec::new(),
            user_input,
            since: Vec::new(),
            now: self.clock.now(),
            hints: BTreeMap::new(),
        };
        let mut reply = model.reply(&renderer.render(&prompt)).await?;
        let mut words = Zeroizing::new(String::new());
        while words.len() < LONGEST * 4 {
            match reply.next().await? {
                ReplyPart::Text(text) => words.push_str(&text),
                ReplyPart::Done(_) => break,
                ReplyPart::Thinking | ReplyPart::ToolCalls(_) => {}
            }
        }
        let sentences = words.trim().split_sentence_bounds().take(SENTENCES);
        let short: String = sentences.collect::<String>().chars().take(LONGEST).collect();
        Ok(Some(short.trim().to_owned()).filter(|short| !short.is_empty()))
    }

    /// As much of what was said last as so many tokens hold, as a text to be summarized.
    fn newest_words(&self, messages: &[Arc<StoredMessage>], tokens: usize) -> ChatMessage {
        let rates = &self.builder.bounds().rates;
        let mut lines = Vec::new();
        let mut left = tokens;
        for stored in messages.iter().rev() {
            let message = &stored.message;
            let line = format!("{}: {}", message.role, message.content);
            let cost = rates.estimate(&line) + 1;
            if cost > left && !lines.is_empty() {
                break;
            }
            left = left.saturating_sub(cost);
            lines.push(line);
        }
        lines.reverse();
        let text = Zeroizing::new(lines.join("\n"));
        let asked = format!("Summarize this conversation:\n\n{}", text.as_str());
        ChatMessage::new(ChatRole::User, asked, &self.clock.now())
    }
}

/// The only id that begins so.
fn meant<'a>(id: &str, profile: &'a Profile) -> Result<&'a str> {
    lookup::only(id, profile.snapshots()).ok_or_else(|| no_such(id, profile))
}

fn no_such(id: &str, profile: &Profile) -> Error {
    Error::NoSuchSnapshot { nearest: lookup::nearest(id, profile.snapshots()) }
}
