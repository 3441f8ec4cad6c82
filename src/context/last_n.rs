//! The newest messages, exactly n or in blocks that keep a model's cache warm.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Context, ContextProvider, ContextRequest, Placement};
use crate::error::Result;
use crate::store::{ConversationStore, Reading, StoredMessage};

/// How far before a block an exchange that began earlier is looked for.
const LOOK_BACK: usize = 8;
/// How many times n a block-wise window grows to before its oldest block is dropped.
const HIGH_WATER: usize = 4;

/// The conversation's newest messages; n is given with each request.
///
/// A window that slides by one message a turn changes the head of every prompt, and a local model reads everything
/// again. [`in_blocks`](Self::in_blocks) keeps the head still: the window grows from n to four times n, then drops
/// its oldest block at once.
pub struct LastNContextProvider {
    store: Arc<dyn ConversationStore>,
    blocks: bool,
}

impl LastNContextProvider {
    /// Exactly the n newest messages.
    pub fn new(store: Arc<dyn ConversationStore>) -> Self {
        let blocks = false;
        Self { store, blocks }
    }

    /// At least the n newest messages and fewer than four times as many, from a start that moves three times n
    /// numbers at a time and depends on the utterance's number alone. A start within an exchange moves back to the
    /// exchange's beginning.
    pub fn in_blocks(store: Arc<dyn ConversationStore>) -> Self {
        let blocks = true;
        Self { store, blocks }
    }

    /// The newest `n` messages before the utterance, or all there are.
    async fn before(&self, request: &ContextRequest<'_>, n: usize) -> Result<Reading> {
        let mut extra = usize::from(request.before.is_some());
        loop {
            let mut reading = self.store.read_tail(n + extra).await?;
            let found = reading.messages.len();
            if let Some(utterance) = request.before {
                reading.messages.retain(|message| message.seq < utterance);
            }
            let left_out = found - reading.messages.len();
            if left_out <= extra || found < n + extra {
                let surplus = reading.messages.len().saturating_sub(n);
                reading.messages.drain(..surplus);
                return Ok(reading);
            }
            extra = left_out;
        }
    }
}

impl std::fmt::Debug for LastNContextProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LastNContextProvider").field("blocks", &self.blocks).finish_non_exhaustive()
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
        let window = if self.blocks { HIGH_WATER * n + n + LOOK_BACK } else { n };
        let reading = self.before(request, window).await?;
        let (start, why) = if self.blocks {
            let start = block_start(&reading.messages, request.before, n, window);
            let first = reading.messages.get(start).map_or(0, |message| message.seq);
            (start, format!("in the blocks from number {first}"))
        } else {
            (0, format!("among the last {n}"))
        };
        let messages = reading.messages.into_iter().skip(start);
        let mut context = Context::new(messages.map(Into::into).collect(), why);
        context.skipped = reading.skipped;
        Ok(context)
    }
}

/// The index at which the window starts.
fn block_start(
    messages: &[Arc<StoredMessage>],
    utterance: Option<u64>,
    n: usize,
    window: usize,
) -> usize {
    let low = n as u64;
    let block = low * (HIGH_WATER as u64 - 1);
    let last = match (utterance, messages.last()) {
        (Some(utterance), _) => utterance - 1,
        (None, Some(newest)) => newest.seq,
        (None, None) => return 0,
    };
    let first_after = |boundary: u64| messages.partition_point(|message| message.seq <= boundary);
    let mut boundary = last.saturating_sub(low) / block * block;
    let mut start = first_after(boundary);
    // Where numbers were forgotten, earlier blocks make up for them, as far as they were read.
    while messages.len() - start < n && boundary > 0 {
        let earlier = first_after(boundary - block);
        if earlier == 0 && messages.len() == window {
            break;
        }
        (boundary, start) = (boundary - block, earlier);
    }
    let began = messages
        .iter()
        .take(start + 1)
        .rev()
        .take(LOOK_BACK)
        .position(|message| message.message.starts_exchange());
    began.map_or(start, |back| start - back)
}
