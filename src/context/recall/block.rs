//! Segments of the index as the store keeps them: one for each block of numbers, with how far it goes.

use sottovoce_recall::{Hit, Role, Segment, Turn};
use zeroize::Zeroizing;

use crate::message::{ChatRole, SEARCH_NOTE};
use crate::store::StoredMessage;
use crate::store::record::document::block_seqs;
use crate::store::record::seq_set::SeqSet;

/// Milliseconds of a day.
const DAY: i64 = 24 * 60 * 60 * 1000;

/// A segment, and the number up to which it covers its block.
pub(super) struct Block {
    pub(super) until: u64,
    pub(super) segment: Segment,
}

impl Block {
    /// The bytes of the document.
    pub(super) fn bytes(until: u64, segment: &Segment) -> Zeroizing<Vec<u8>> {
        let segment = segment.to_bytes();
        let mut bytes = Zeroizing::new(Vec::with_capacity(segment.len() + 8));
        bytes.extend_from_slice(&until.to_le_bytes());
        bytes.extend_from_slice(&segment);
        bytes
    }

    /// The segment in a document, if it is one of this version over messages of that block that are all still there.
    pub(super) fn from_bytes(
        block: u64,
        bytes: &[u8],
        last_seq: u64,
        gone: &SeqSet,
    ) -> Option<Self> {
        let (until, segment) = bytes.split_first_chunk()?;
        let until = u64::from_le_bytes(*until);
        let segment = Segment::from_bytes(segment).ok()?;
        let seqs = block_seqs(block);
        let is_of_block = |seq: u64| seqs.contains(&seq) && seq <= until && !gone.contains(seq);
        let is_whole = seqs.contains(&until) && until <= last_seq;
        (is_whole && segment.seqs().all(is_of_block)).then_some(Self { until, segment })
    }
}

/// Whether a message is in the index: what people and the assistant said is, and what tools and notes say is not.
pub(super) fn is_indexed(stored: &StoredMessage) -> bool {
    let message = &stored.message;
    matches!(message.role, ChatRole::User | ChatRole::Assistant)
        && !message.content.trim().is_empty()
        && !message.metadata.contains_key(SEARCH_NOTE)
}

/// Whether a hit is of this message. A segment from another store under the same key names the same numbers.
pub(super) fn is_hit(stored: &StoredMessage, hit: &Hit) -> bool {
    let turn = turn(stored);
    let length = u32::try_from(turn.text.chars().count()).unwrap_or(u32::MAX);
    is_indexed(stored) && (turn.at, turn.day, length) == (hit.at, hit.day, hit.length)
}

/// A message as the index takes it.
pub(super) fn turn(stored: &StoredMessage) -> Turn<'_> {
    let message = &stored.message;
    let role = match message.role {
        ChatRole::User => Role::User,
        ChatRole::Assistant => Role::Assistant,
        ChatRole::System => Role::System,
        ChatRole::Tool => Role::Tool,
    };
    let at = message.said_at().as_millisecond();
    let local = at.saturating_add(i64::from(message.offset_minutes.unwrap_or(0)) * 60_000);
    let day = i32::try_from(local.div_euclid(DAY)).unwrap_or(i32::MAX);
    let mut turn = Turn::new(stored.seq, at, day, role, &message.content);
    turn.speaker = message.speaker();
    turn.thread = message.thread_id.as_deref();
    turn
}
