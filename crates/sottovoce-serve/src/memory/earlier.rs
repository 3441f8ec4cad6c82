//! What was said before: the history before a session, and what is recalled for an utterance.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use sottovoce::context::{Context, ContextMessage, ContextProvider, ContextRequest, TokenRates};
use sottovoce::model::earlier_text;
use sottovoce::prompt::{ReceiptEntry, history_within};
use sottovoce::store::Profile;
use sottovoce::{ChatMessage, ChatRole, Result, StoredMessage};

use crate::open_scope::OpenScope;

/// What stands above the history in a system prompt, and before a summary.
const SAID_BEFORE: &str = "Said before this conversation";
const SUMMARY: &str = "Earlier, in short:";

/// The longest time that a request waits for recall, such as while a large index is loaded.
const PATIENCE: Duration = Duration::from_millis(300);

/// What was said before, in one conversation and at one time.
pub(super) struct Earlier<'a> {
    scope: &'a Arc<OpenScope>,
    thread: Option<&'a str>,
    profile: Arc<Profile>,
    forgotten: Vec<std::ops::RangeInclusive<u64>>,
}

impl<'a> Earlier<'a> {
    pub(super) async fn of(scope: &'a Arc<OpenScope>, thread: Option<&'a str>) -> Result<Self> {
        let profile = scope.store.profile().await?;
        let forgotten = scope.store.state().await?.forgotten().collect();
        Ok(Self { scope, thread, profile, forgotten })
    }

    fn request<'b>(&'b self, words: &'b str, before: u64) -> ContextRequest<'b> {
        let mut request = ContextRequest::new(&self.scope.store, words, self.scope.last_n);
        request.before = Some(before);
        request.thread = self.thread;
        request.now = Some(self.scope.store.clock().now().timestamp());
        request.profile = Some(&self.profile);
        request
    }

    /// The newest messages before a number, within so many tokens, and what became of each. As long as none of them is
    /// forgotten, the same number gives the same messages.
    pub(super) async fn before(
        &self,
        seq: u64,
        tokens: usize,
    ) -> Result<(Context, Vec<ReceiptEntry>)> {
        if tokens == 0 {
            return Ok(Default::default());
        }
        let mut found = self.scope.history.get_context(&self.request("", seq)).await?;
        found = found.under(SAID_BEFORE);
        found.messages.retain(|message| {
            message.message().role != ChatRole::Tool && !message.message().content.is_empty()
        });
        let rates = TokenRates::default();
        let price = |message: &ContextMessage| {
            rates.estimate(&earlier_text(&Context::new(vec![message.clone()], "").under("")))
        };
        let heading = found.heading.as_deref().map_or(0, |heading| rates.estimate(heading));
        let mut room = tokens.saturating_sub(heading);
        // It also stands in a session whose own beginning it covers: what it covers from before is nowhere else.
        let summary = self.profile.summary(self.thread).map(|summary| {
            let words = format!("{SUMMARY} {}", summary.text);
            ContextMessage::from(ChatMessage::at(ChatRole::System, words, summary.until))
        });
        let summary = summary.filter(|summary| price(summary) <= room);
        room -= summary.as_ref().map_or(0, price);
        let (mut history, entries) = history_within(found, room, price);
        history.messages.splice(0..0, summary);
        Ok((history, entries))
    }

    /// What fits an utterance, without the messages that are offered already.
    ///
    /// # Errors
    /// The reason for leaving it out.
    pub(super) async fn recalled(
        &self,
        utterance: &Arc<StoredMessage>,
        offered: HashSet<u64>,
    ) -> Result<Context, &'static str> {
        let Some(recaller) = self.scope.recaller.clone() else { return Ok(Context::default()) };
        let (scope, utterance) = (Arc::clone(self.scope), Arc::clone(utterance));
        let (profile, thread) = (Arc::clone(&self.profile), self.thread.map(str::to_owned));
        // It goes on if nobody waits any more, so that the index is loaded for the next request.
        let work = tokio::spawn(async move {
            let earlier = Earlier {
                scope: &scope,
                thread: thread.as_deref(),
                profile,
                forgotten: Vec::new(),
            };
            let mut request = earlier.request(&utterance.message.content, utterance.seq);
            request.offered = Some(&offered);
            recaller.get_context(&request).await
        });
        match tokio::time::timeout(PATIENCE, work).await {
            Ok(Ok(Ok(found))) => Ok(found),
            Ok(Ok(Err(error))) => {
                tracing::warn!(%error, "nothing was recalled");
                Err("what was said could not be searched")
            }
            Ok(Err(_)) => Err("the search ended early"),
            Err(_) => Err("the search took too long"),
        }
    }

    /// Takes out what was forgotten, cleared or pruned since it was found.
    pub(super) fn drop_forgotten(&self, context: &mut Context) {
        let is_here = |message: &ContextMessage| {
            let Some(seq) = message.seq() else { return true };
            let is_cleared = self.profile.cleared.is_some_and(|cleared| seq <= cleared.seq);
            !is_cleared
                && !self.profile.is_pruned(seq)
                && !self.forgotten.iter().any(|range| range.contains(&seq))
        };
        context.messages.retain(is_here);
        context.left_out.retain(is_here);
    }
}
