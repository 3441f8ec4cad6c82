//! Proposes a conversation's title.

use crate::conversation::Conversation;
use crate::conversation::summary::writer::WritingTask;
use crate::error::{Error, Result};
use crate::message::texts;
use crate::store::Profile;

const TITLE: WritingTask = WritingTask { text: texts::TITLE, sentences: 1, longest: 80 };

/// The number of newest messages that a title is made from.
const LOOKED_AT: usize = 64;

impl Conversation {
    /// Asks the model for a title from the newest messages, and stores it. Forgetting any message removes the title,
    /// because it may come from that message.
    ///
    /// # Errors
    /// [`Error::NoModel`], those of the model, and [`Error::NothingToRetry`] if there are no messages.
    pub async fn propose_title(&self) -> Result<String> {
        let profile = self.store.profile().await?;
        let mut messages = self.store.read_tail(LOOKED_AT).await?.messages;
        let now = self.clock.now().timestamp();
        messages.retain(|stored| profile.is_context(stored, now));
        if messages.is_empty() {
            return Err(Error::NothingToRetry);
        }
        let room = self.room().await?;
        let lines = self.newest_lines(messages.iter().map(|stored| &stored.message), room);
        let words = self.write_text(&TITLE, &lines).await?;
        let one_line = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let title = one_line.trim_matches(|c: char| "\"'“”„«».*#".contains(c)).trim().to_owned();
        let kept = title.clone();
        self.store.change_profile(Box::new(move |profile| profile.propose(kept.clone()))).await?;
        // Later forgetting removes the title. Forgetting during the request did not find it, so check here.
        let there = self.store.read_tail(LOOKED_AT * 2).await?.messages;
        let is_there = |seq| there.iter().any(|stored| stored.seq == seq);
        if !messages.iter().all(|stored| is_there(stored.seq)) {
            let made = title.clone();
            let take_back = move |profile: &mut Profile| {
                if profile.title_is_proposed && profile.title.as_ref() == Some(&made) {
                    profile.rename(None);
                }
            };
            self.store.change_profile(Box::new(take_back)).await?;
            return Err(Error::NothingToRetry);
        }
        Ok(title)
    }
}
