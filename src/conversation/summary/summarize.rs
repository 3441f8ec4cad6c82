//! Replaces old messages in prompts by a summary.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;
use zeroize::Zeroizing;

use crate::context::blocks;
use crate::conversation::Conversation;
use crate::conversation::summary::writer::WritingTask;
use crate::error::{ModelFailure, Result};
use crate::message::texts;
use crate::prompt::Receipt;
use crate::store::{Profile, StoredMessage, Summary};

const SUMMARIZE: WritingTask = WritingTask { text: texts::SUMMARIZE, sentences: 12, longest: 2400 };

const SHORTEN: WritingTask = WritingTask { text: texts::SHORTEN, sentences: 16, longest: 2400 };

/// The most messages that summarizing looks back.
const FARTHEST: usize = 1 << 14;
/// How often a step is repeated because something was forgotten or cleared meanwhile.
const ATTEMPTS: usize = 3;
/// The longest summary that is kept as it is, as a fraction of the room for a request and in tokens.
const SUMMARY_SHARE: usize = 4;
const LONGEST_SUMMARY: usize = 1024;
/// A summary must keep at least one token of this many, up to a limit. Otherwise a model that is too small for the
/// task and only returns a greeting would hide the whole conversation.
const SAID_SHARE: usize = 64;
const NOTES_SHARE: usize = 16;
const ENOUGH: usize = 32;

/// The result of summarizing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SummaryReport {
    /// The number of messages that are newly summarized.
    pub messages: usize,
    /// Estimated tokens of these messages.
    pub tokens_before: usize,
    /// Estimated tokens of the summary; 0 if there is none.
    pub tokens_after: usize,
    /// The number of requests to the model.
    pub requests: usize,
    /// Whether a turn began and the rest was left for the next call.
    pub interrupted: bool,
}

impl Conversation {
    /// Asks the model to summarize this thread's messages before the newest `keep` ones. The summary then replaces
    /// them in prompts. The messages stay stored, and [`undo_summary`](Self::undo_summary) brings them back. A later
    /// call continues from the summary, so that the model reads each message once. If the messages exceed one
    /// request, the work goes step by step, and each step is saved. Messages more than 16,384 back are left out.
    ///
    /// A turn that begins meanwhile stops the work; the finished steps stay.
    ///
    /// # Errors
    /// [`Error::NoModel`](crate::Error::NoModel), and those of the model. Finished steps stay, and nothing else
    /// changes.
    pub async fn summarize(&self, keep: usize) -> Result<SummaryReport> {
        self.binding()?;
        let mut began = self.turns.subscribe();
        // The turn in progress uses the model first.
        drop(self.wait().await);
        began.mark_unchanged();
        self.summarize_until(keep, began).await
    }

    /// Undoes this thread's last summary, so that prompts hold the messages again. Returns whether there was one.
    ///
    /// # Errors
    /// Those of writing the settings.
    pub async fn undo_summary(&self) -> Result<bool> {
        let mut state = self.wait().await;
        state.request = None;
        self.store.remove_summary(self.parts.prompts.thread.clone()).await
    }

    /// Whether a prompt was so long that older messages should be summarized. A context is never summarized without
    /// being asked: the summary would stand after its personality and change the beginning of every prompt.
    pub(crate) fn is_filled(&self, receipt: &Receipt) -> bool {
        receipt.history_limit.is_none()
            && self.parts.summarize_at.is_some_and(|(share, _)| receipt.is_filled(share))
    }

    /// Summarizes in the background unless a turn begins first. After an error, the next turn tries again.
    pub(crate) fn summarize_when_idle(&self) {
        let Some((_, idle)) = self.parts.summarize_at else { return };
        let mut began = self.turns.subscribe();
        let conversation = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = began.changed() => return,
                () = tokio::time::sleep(idle) => {}
            }
            if conversation.summarize_in_background(began).await {
                // The beginning of the prompt has changed.
                drop(conversation.warm_up().await);
            }
        });
    }

    /// Summarizes older messages in the background after this time, unless a turn begins first, if a prompt would then be
    /// as full as [`summarize_at`](crate::ConversationBuilder::summarize_at) says. For a host that calls
    /// [`host_turn`](Self::host_turn); other turns do this by themselves. After an error, the next call tries again.
    pub fn summarize_if_filled_after(&self, idle: Duration) {
        if self.parts.summarize_at.is_none() || self.model.is_none() {
            return;
        }
        let mut began = self.turns.subscribe();
        let conversation = self.clone();
        tokio::spawn(async move {
            let filled = async {
                tokio::time::sleep(idle).await;
                conversation
                    .prompt("")
                    .await
                    .is_ok_and(|(_, receipt)| conversation.is_filled(&receipt))
            };
            let is_filled = tokio::select! {
                _ = began.changed() => return,
                is_filled = filled => is_filled,
            };
            if is_filled {
                conversation.summarize_in_background(began).await;
            }
        });
    }

    /// Returns whether there is a new summary.
    async fn summarize_in_background(&self, began: watch::Receiver<u64>) -> bool {
        match self.summarize_until(self.parts.last_n, began).await {
            Ok(SummaryReport { messages: 0, .. }) => false,
            Ok(summarized) => {
                tracing::info!(messages = summarized.messages, "summarized older messages");
                true
            }
            Err(error) => {
                tracing::warn!(%error, "could not summarize older messages");
                false
            }
        }
    }

    /// Summarizes until a turn begins.
    async fn summarize_until(
        &self,
        keep: usize,
        mut began: watch::Receiver<u64>,
    ) -> Result<SummaryReport> {
        let mut done = SummaryReport::default();
        let room = self.room().await?;
        let mut failed = 0;
        loop {
            let profile = self.store.profile().await?;
            let before = profile.summary(self.thread()).cloned();
            let older = self.older(&profile, keep).await?;
            let step = self.step(&older, room);
            let (Some(last), false) = (step.taken.last(), profile.is_unknown) else { break };
            let told = self.write_summary(before.as_ref(), &step, room);
            let (text, requests) = tokio::select! {
                biased;
                _ = began.changed() => {
                    done.interrupted = true;
                    break;
                }
                told = told => told?,
            };
            done.requests += requests;
            let mut of = before.as_ref().map(|before| before.of().clone()).unwrap_or_default();
            of.extend(step.taken.iter().map(|stored| stored.seq..=stored.seq));
            let now = self.clock.now().timestamp();
            let tokens = self.parts.prompts.limits.rates.estimate(&text);
            let times = (now, last.ordered_at());
            let summary =
                Summary::new(self.parts.prompts.thread.clone(), times, of, String::clone(&text));
            // The steps of one call are undone together.
            let goes_on = done.messages > 0;
            if self.store.install_summary(summary, before, goes_on).await? {
                done.messages += step.taken.len();
                done.tokens_before += step.tokens;
                done.tokens_after = tokens;
            } else {
                failed += 1;
                if failed == ATTEMPTS {
                    break;
                }
            }
        }
        if done.messages > 0 {
            let state = Arc::clone(&self.state);
            if let Ok(mut state) = state.try_lock_owned() {
                state.request = None;
            }
        }
        Ok(done)
    }

    /// Extends a summary by more messages, and shortens both if they are long. The old summary's text is not written
    /// again with each step, because every rewriting loses something. Also returns the number of requests.
    async fn write_summary(
        &self,
        before: Option<&Summary>,
        step: &Step,
        room: usize,
    ) -> Result<(Zeroizing<String>, usize)> {
        let rates = &self.parts.prompts.limits.rates;
        let said = self.write_text(&SUMMARIZE, &step.lines).await?;
        self.check_kept(&said, &step.lines, SAID_SHARE)?;
        let Some(before) = before else { return Ok((said, 1)) };
        let both = Zeroizing::new(format!("{}\n{}", before.text, *said));
        if rates.estimate(&both) <= (room / SUMMARY_SHARE).min(LONGEST_SUMMARY) {
            return Ok((both, 1));
        }
        let short = self.write_text(&SHORTEN, &both).await?;
        self.check_kept(&short, &both, NOTES_SHARE)?;
        Ok((short, 2))
    }

    /// Refuses a summary that is too short for its messages.
    fn check_kept(&self, summary: &str, of: &str, share: usize) -> Result<()> {
        let rates = &self.parts.prompts.limits.rates;
        if rates.estimate(summary) < (rates.estimate(of) / share).min(ENOUGH) {
            return Err(self.binding()?.failed(ModelFailure::TooShort));
        }
        Ok(())
    }

    /// The messages of this thread's context, without the summarized ones.
    pub(crate) async fn in_context(&self, profile: &Profile) -> Result<Vec<Arc<StoredMessage>>> {
        let summary = profile.summary(self.thread());
        let mut messages = self.store.read_thread(self.thread(), FARTHEST).await?.messages;
        let now = self.clock.now().timestamp();
        messages.retain(|stored| {
            profile.is_context(stored, now)
                && stored.seq > self.parts.prompts.started_after()
                && !summary.is_some_and(|summary| summary.replaces(stored))
        });
        Ok(messages)
    }

    /// The messages that may be summarized: those of the context before the newest ones. The newest ones keep whole
    /// exchanges.
    async fn older(&self, profile: &Profile, keep: usize) -> Result<Vec<Arc<StoredMessage>>> {
        let mut messages = self.in_context(profile).await?;
        let newest = messages.len().saturating_sub(keep);
        let starts = |stored: &Arc<StoredMessage>| stored.message.starts_exchange();
        let end = match messages.get(newest) {
            None => messages.len(),
            Some(_) => messages.iter().take(newest + 1).rposition(starts).unwrap_or(0),
        };
        messages.truncate(end);
        Ok(messages)
    }

    /// The oldest messages that fit one request, with their text.
    fn step(&self, older: &[Arc<StoredMessage>], room: usize) -> Step {
        let rates = &self.parts.prompts.limits.rates;
        let mut step = Step::default();
        let mut left = room;
        let mut lines = Vec::new();
        for stored in older {
            let (line, cost) = self.line(&stored.message, room);
            if cost > left && !lines.is_empty() {
                break;
            }
            left = left.saturating_sub(cost);
            step.tokens += rates.estimate_message(&stored.message);
            step.taken.push(Arc::clone(stored));
            lines.push(line);
        }
        // Tool results stay with their calls.
        let whole = blocks::whole_to(step.taken.iter().map(|stored| &stored.message), older.len());
        lines.truncate(whole);
        step.taken.truncate(whole);
        step.lines = lines.iter().map(|line| line.as_str()).collect::<Vec<_>>().join("\n").into();
        step
    }
}

/// The content of one request.
#[derive(Default)]
struct Step {
    taken: Vec<Arc<StoredMessage>>,
    lines: Zeroizing<String>,
    tokens: usize,
}
