//! What is shown of a message that was found.

use std::ops::Range;

use super::results::RecallHit;
use super::text;
use crate::store::ConversationStore;

/// Of a message with more characters than this, only the passage that fits is shown.
pub(super) const LONGEST: usize = 400;
/// Of an artifact's text, the rest of a line is shown with its passage up to so many bytes.
const NEAR: usize = 160;

impl RecallHit {
    /// Whether what is shown of it is known to give the assistant orders.
    pub(super) fn gives_orders(&self) -> bool {
        let (own, fits) = (&self.stored.message.content, &self.hit.passage);
        let is_shown = |order: &Range<usize>| match own.chars().count() <= LONGEST {
            true if order.start < own.len() => true,
            _ => order.start < fits.end + NEAR && fits.start < order.end + NEAR,
        };
        self.hit.orders.as_ref().is_some_and(|orders| orders.iter().any(is_shown))
    }

    /// What fits, if it is not the whole message: the passage of a message of more than 400 characters, or of an artifact
    /// that it refers to.
    pub async fn excerpt(&self, store: &dyn ConversationStore) -> Option<String> {
        let own = &self.stored.message.content;
        let range = &self.hit.passage;
        let is_short = own.chars().count() <= LONGEST;
        if range.end <= own.len() {
            return (!is_short).then(|| passage(own, range));
        }
        // The note tells at least where the text stands if that cannot be read.
        let whole = text::whole(store, &self.stored).await.ok()??;
        let passage = passage(&whole.text, &lines(&whole.text, own.len() + 1, range));
        Some(if is_short { format!("{own}\n{passage}") } else { passage })
    }
}

/// The lines of a passage, as far as they are near, in a text from `start` on.
pub(super) fn lines(text: &str, start: usize, passage: &Range<usize>) -> Range<usize> {
    let (first, last) = (passage.start.max(start), passage.end);
    let before = text.get(start..first).unwrap_or_default();
    let from = before.rfind('\n').map_or(start, |at| start + at + 1);
    let after = text.get(last..).unwrap_or_default();
    let to = after.find('\n').map_or(text.len(), |at| last + at);
    let is_near = |length: usize| length <= NEAR;
    let from = if is_near(first - from) { from } else { first };
    from..if is_near(to - last) { to } else { last }
}

/// Part of a text, with marks where it was cut.
pub(super) fn passage(text: &str, range: &Range<usize>) -> String {
    let passage = text.get(range.clone()).unwrap_or(text);
    let before = if range.start > 0 { "… " } else { "" };
    let after = if range.end < text.len() { " …" } else { "" };
    format!("{before}{}{after}", passage.trim())
}
