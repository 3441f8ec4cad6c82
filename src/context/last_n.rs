//! A provider of the newest messages: exactly n, or in blocks that keep a model's prompt cache valid.

use std::sync::Arc;

use async_trait::async_trait;

use super::history::History;
use super::{Context, ContextProvider, ContextRequest, Placement, blocks};
use crate::error::Result;
use crate::message::ChatRole;
use crate::store::StoredMessage;

/// A window with forgotten messages may read up to this many times n messages.
const SPARE: usize = 6;

/// Provides the newest messages since the last clear. Each request sets n. The provider returns exactly n messages,
/// or [in blocks](Self::in_blocks) from n to four times n.
///
/// A window that slides by one message a turn changes the beginning of every prompt, and a local model then reads the
/// whole prompt again. [`in_blocks`](Self::in_blocks) keeps the beginning unchanged: the window grows from n to four
/// times n, then drops its oldest block at once.
#[derive(Debug, Clone)]
pub struct LastNContextProvider {
    blocks: bool,
}

impl LastNContextProvider {
    /// Provides exactly the n newest messages.
    pub fn new() -> Self {
        Self { blocks: false }
    }

    /// Provides n to four times n messages: the window grows to four times n, then drops three times n at once. The
    /// start depends on the utterance's number alone. The window starts with an exchange, so that a tool result never
    /// stands without its call.
    pub fn in_blocks() -> Self {
        Self { blocks: true }
    }
}

impl Default for LastNContextProvider {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl ContextProvider for LastNContextProvider {
    fn placement(&self) -> Placement {
        Placement::History
    }

    async fn get_context(&self, request: &ContextRequest<'_>) -> Result<Context> {
        let n = request.n;
        if n == 0 {
            return Ok(Context::new(Vec::new(), "no history was asked for"));
        }
        let mut most = if self.blocks { n.saturating_mul(SPARE) } else { n };
        let history = History::of(request).await?;
        let mut reading = history.newest(most).await?;
        // One exchange with many tool calls may be longer than what was read.
        while self.blocks
            && reading.messages.len() == most
            && !reading.messages.iter().any(|stored| stored.message.starts_exchange())
        {
            most = most.saturating_mul(4);
            reading = history.newest(most).await?;
        }
        let next = request.before.unwrap_or(reading.last_seq.saturating_add(1));
        let start = match self.blocks {
            true => block_start(&reading.messages, next, n, most),
            false => 0,
        };
        let messages = reading.messages.into_iter().skip(start);
        let why = match messages.len() {
            1 => "the newest message".to_owned(),
            count => format!("one of the newest {count} messages"),
        };
        let mut context = Context::new(messages.map(Into::into).collect(), why);
        context.skipped = reading.skipped;
        Ok(context)
    }
}

/// The index at which the window starts.
fn block_start(messages: &[Arc<StoredMessage>], utterance: u64, n: usize, most: usize) -> usize {
    let low = n as u64;
    let block = blocks::length(n);
    let last = utterance.saturating_sub(1);
    let seqs = blocks::rising(messages.iter().map(|message| message.seq).collect());
    let first_after = |border: u64| seqs.partition_point(|&seq| seq <= border);
    let high_water = low.saturating_mul(blocks::HIGH_WATER);
    let mut border =
        blocks::border(last.saturating_sub(high_water), last.saturating_sub(low), block);
    let mut start = first_after(border);
    // If numbers were forgotten, earlier blocks replace them, as far as they were read.
    while messages.len() - start < n && border > 0 {
        border = border.saturating_sub(block);
        let earlier = first_after(border);
        if earlier == 0 && messages.len() == most {
            break;
        }
        start = earlier;
    }
    // The numbers of imported messages do not follow their times.
    start = start.min(messages.len().saturating_sub(n));
    let starts = |stored: &Arc<StoredMessage>| stored.message.starts_exchange();
    let whole = blocks::whole_from(messages.iter().map(|stored| &stored.message), start);
    if messages.len() - whole >= (n / 2).max(1) {
        return whole;
    }
    // A long exchange fills the window. Prefer all of it to almost nothing, and a part of it to nothing at all.
    let before = messages.iter().take(whole).rposition(starts);
    let part = || messages.iter().skip(start).position(|m| m.message.role != ChatRole::Tool);
    match before {
        Some(before) => before,
        None if whole < messages.len() => whole,
        None => part().map_or(whole, |part| start + part),
    }
}
