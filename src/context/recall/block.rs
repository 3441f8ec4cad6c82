//! Segments of the index as the store keeps them: one for each block of numbers, with how far it goes.

use std::collections::BTreeSet;

use sottovoce_recall::{Hit, Role, Segment, Turn};
use zeroize::Zeroizing;

use crate::message::{CAME_FROM, ChatRole, SEARCH_NOTE, Source};
use crate::store::record::artifact::ID_LENGTH;
use crate::store::record::document::block_seqs;
use crate::store::{Profile, StoreState, StoredMessage, artifact_references};

/// Milliseconds of a day.
const DAY: i64 = 24 * 60 * 60 * 1000;

/// A segment, the number up to which it covers its block, and the artifacts whose text is in it.
pub(super) struct Block {
    pub(super) until: u64,
    pub(super) artifacts: BTreeSet<String>,
    pub(super) segment: Segment,
}

impl Block {
    /// The bytes of the document.
    pub(super) fn bytes(
        until: u64,
        artifacts: &BTreeSet<String>,
        segment: &Segment,
    ) -> Zeroizing<Vec<u8>> {
        let segment = segment.to_bytes();
        let ids = artifacts.iter().map(String::len).sum::<usize>();
        let mut bytes = Zeroizing::new(Vec::with_capacity(segment.len() + ids + 12));
        bytes.extend_from_slice(&until.to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(ids).unwrap_or(u32::MAX).to_le_bytes());
        artifacts.iter().for_each(|id| bytes.extend_from_slice(id.as_bytes()));
        bytes.extend_from_slice(&segment);
        bytes
    }

    /// The segment in a document, if it is one of this version over messages of that block and artifacts that are all
    /// still there.
    pub(super) fn from_bytes(
        block: u64,
        bytes: &[u8],
        state: &StoreState,
        profile: &Profile,
    ) -> Option<Self> {
        let (until, bytes) = bytes.split_first_chunk()?;
        let until = u64::from_le_bytes(*until);
        let (ids, bytes) = bytes.split_first_chunk()?;
        let (ids, segment) = bytes.split_at_checked(u32::from_le_bytes(*ids) as usize)?;
        let ids = ids.chunks(ID_LENGTH).map(|id| Some(str::from_utf8(id).ok()?.to_owned()));
        let artifacts = ids.collect::<Option<BTreeSet<_>>>()?;
        let segment = Segment::from_bytes(segment).ok()?;
        let seqs = block_seqs(block);
        let is_of_block =
            |seq: u64| seqs.contains(&seq) && seq <= until && !state.forgotten.contains(seq);
        let is_whole = seqs.contains(&until) && until <= state.last_seq;
        let is_believed = is_whole
            && segment.seqs().all(is_of_block)
            && !artifacts.iter().any(|id| profile.has_deleted_artifact(id));
        is_believed.then_some(Self { until, artifacts, segment })
    }
}

/// Whether a message is in the index: what people and the assistant said is, what a document says, and a note about an
/// artifact. What tools and other notes say is not.
pub(super) fn is_indexed(stored: &StoredMessage) -> bool {
    let message = &stored.message;
    let is_of_role = match message.role {
        ChatRole::User | ChatRole::Assistant => true,
        ChatRole::System => {
            message.metadata.contains_key(CAME_FROM) && message.source().0 == Source::Document
                || artifact_references(&message.content).next().is_some()
        }
        ChatRole::Tool => false,
    };
    is_of_role && !message.content.trim().is_empty() && !message.metadata.contains_key(SEARCH_NOTE)
}

/// Whether a hit is of this message. A segment from another store under the same key names the same numbers.
pub(super) fn is_hit(stored: &StoredMessage, hit: &Hit) -> bool {
    let text = &stored.message.content;
    let turn = turn(stored, text);
    let length = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    // With a message's artifacts the text is longer.
    let is_longer = length < hit.length && artifact_references(text).next().is_some();
    let is_same = (turn.at, turn.day) == (hit.at, hit.day);
    is_indexed(stored) && is_same && (length == hit.length || is_longer)
}

/// A message as the index takes it, with this text.
pub(super) fn turn<'a>(stored: &'a StoredMessage, text: &'a str) -> Turn<'a> {
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
    let mut turn = Turn::new(stored.seq, at, day, role, text);
    turn.speaker = message.speaker();
    turn.thread = message.thread_id.as_deref();
    turn
}
