//! What the index must answer, worked out from the messages by the plainest way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{Timestamp, Zoned};
use sottovoce::store::{Profile, ReadQuery, StoreBackend};
use sottovoce::{ChatMessage, ChatRole, ConversationStore, FileConversationStore};
use sottovoce_recall::{
    Asked, BuildOptions, Index, Question, Role, Segment, Turn, put_newer_first,
};

const DAY: i64 = 86_400_000;

/// What a conversation holds, and what it may not hold again.
#[derive(Default)]
pub(crate) struct Model {
    /// The messages that were not forgotten, by number.
    live: BTreeMap<u64, ChatMessage>,
    forgotten: BTreeSet<u64>,
    profile: Arc<Profile>,
}

impl Model {
    /// Learns what a store holds after a step. What was forgotten must not be back.
    pub(crate) async fn learn(&mut self, store: &FileConversationStore) {
        let stored = store.read(ReadQuery::Seqs(0..=u64::MAX)).await.unwrap();
        assert!(stored.skipped.is_empty(), "{:?}", stored.skipped);
        let before = std::mem::take(&mut self.live);
        self.live = stored.messages.iter().map(|m| (m.seq, m.message.clone())).collect();
        self.forgotten.extend(before.into_keys().filter(|seq| !self.live.contains_key(seq)));
        assert!(self.live.keys().all(|seq| !self.forgotten.contains(seq)), "forgotten, and back");
        self.profile = store.profile().await.unwrap();
    }

    /// Whether a message may be recalled, apart from the limits of the conversation.
    pub(crate) fn shows(&self, seq: u64, thread: Option<&str>, now: Timestamp) -> bool {
        let Some(message) = self.live.get(&seq) else { return false };
        let expires = message.metadata.get("expiresAt").map(|at| at.parse::<Timestamp>().unwrap());
        let is_imported = message.metadata.contains_key("importedFrom");
        let is_cleared = self.profile.cleared.is_some_and(|cleared| {
            seq <= cleared.seq || (is_imported && message.timestamp <= cleared.at)
        });
        message.thread_id.as_deref() == thread
            && !self.profile.is_pruned(seq)
            && !is_cleared
            && expires.is_none_or(|expires| expires >= now)
    }
}

/// The hits for a question, from one segment over all stored messages: numbers, and scores to the last bit.
pub(crate) async fn expected(
    store: &FileConversationStore,
    question: &str,
    now: &Zoned,
    limit: usize,
    shows: impl Fn(u64) -> bool,
) -> Vec<(u64, u32)> {
    let mut stored = store.read(ReadQuery::Seqs(0..=u64::MAX)).await.unwrap().messages;
    stored.sort_by_key(|stored| stored.seq);
    let shown = store.read_tail(usize::MAX).await.unwrap().messages;
    let shown: BTreeSet<u64> = shown.iter().map(|stored| stored.seq).collect();
    let turns = stored.iter().filter_map(|stored| turn(stored.seq, &stored.message));
    let mut index = Index::default();
    index.insert(0, Segment::build(turns, &BuildOptions::default()));
    let Some(years) = index.years() else { return Vec::new() };
    let asked = Asked::new(now.clone(), years);
    let asking = Question::new(question, &asked);
    #[cfg(feature = "meaning")]
    let asking = asking.meaning(&sottovoce_encoder::Encoder::shared().unwrap().encode(question));
    let visible = |seq: u64| shown.contains(&seq) && shows(seq);
    let mut hits = index.rank(&asking, visible, usize::MAX);
    put_newer_first(&mut hits, &asking);
    hits.truncate(limit);
    hits.into_iter().map(|hit| (hit.seq, hit.score.to_bits())).collect()
}

fn turn(seq: u64, message: &ChatMessage) -> Option<Turn<'_>> {
    let role = match message.role {
        ChatRole::User => Role::User,
        ChatRole::Assistant => Role::Assistant,
        _ => return None,
    };
    if message.content.trim().is_empty() {
        return None;
    }
    let at = message.said_at().as_millisecond();
    let local = at + i64::from(message.offset_minutes.unwrap_or(0)) * 60_000;
    let day = i32::try_from(local.div_euclid(DAY)).unwrap();
    let mut turn = Turn::new(seq, at, day, role, &message.content);
    turn.speaker = message.metadata.get("speaker").map(String::as_str);
    turn.thread = message.thread_id.as_deref();
    Some(turn)
}
