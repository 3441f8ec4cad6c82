//! Plans for forgetting. One plan is shown first and then carried out.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::store::record::encoding::StoredMessage;
use crate::store::record::finding::Finding;
use crate::store::record::import_digest::{ImportTombstones, Origin};
use crate::store::record::profile::Profile;
use crate::store::record::seq_set::SeqSet;
use crate::store::record::snapshot::Snapshot;

/// What to forget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ForgetRequest {
    Numbers(Vec<RangeInclusive<u64>>),
    /// Messages with the answers to them.
    Exchanges(Vec<RangeInclusive<u64>>),
    /// What a plan has named, and which of it are answers.
    Planned(SeqSet, SeqSet),
    /// The whole conversation.
    All,
}

/// What forgetting would delete, computed in advance. Numbers are sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForgetPlan {
    /// The requested messages.
    pub messages: Vec<u64>,
    /// The answers to them, with results of functions, which often repeat what was said.
    pub answers: Vec<u64>,
    /// Messages of which some of the requested ones are restored copies.
    pub originals: Vec<u64>,
    /// Other copies of the same messages, restored from snapshots.
    pub copies: Vec<u64>,
    /// Hidden messages. They go too, because they would become visible in place of the forgotten ones.
    pub hidden: Vec<u64>,
    /// How many numbers have no message that opens. They are recorded as forgotten.
    pub lost: u64,
    /// Snapshots from which messages are removed, with their summaries.
    pub changed_snapshots: Vec<String>,
    /// Snapshots that become empty and are deleted.
    pub deleted_snapshots: Vec<String>,
    /// Snapshots that cannot be opened. They are never read again, because they may have any of the messages.
    pub closed_snapshots: Vec<String>,
    /// How many summaries are removed because they cover some of the messages.
    pub summaries: usize,
    /// Whether a title that a model proposed is removed.
    pub proposed_title: bool,
    /// The artifacts that are deleted.
    pub artifacts: Vec<String>,
    /// The daily backups that the store has made of this conversation: files in the folder of backups.
    pub backups: Vec<String>,
    /// Whether the title, tags, notes and costs are removed: only with the whole conversation.
    pub description: bool,
    /// Whether this is a persona conversation, which keeps its name, character and limits.
    pub keeps_context: bool,
    /// The requested numbers, with those of the answers.
    pub(crate) asked: SeqSet,
    pub(crate) answering: SeqSet,
    pub(crate) numbers: SeqSet,
    pub(crate) is_whole: bool,
}

impl ForgetPlan {
    /// A plan for what is asked of a conversation with that highest number.
    pub(crate) fn begin(asked: &ForgetRequest, last: u64) -> Self {
        let numbers = match asked {
            ForgetRequest::All => SeqSet::up_to(last),
            ForgetRequest::Planned(numbers, _) => numbers.clone(),
            ForgetRequest::Numbers(ranges) | ForgetRequest::Exchanges(ranges) => {
                ranges.iter().map(|range| *range.start()..=(*range.end()).min(last)).collect()
            }
        };
        Self { asked: numbers, is_whole: *asked == ForgetRequest::All, ..Self::default() }
    }

    /// Adds the answers to the requested messages.
    pub(crate) fn answered_by(&mut self, answers: SeqSet) {
        self.asked.extend(answers.ranges());
        self.answering = answers;
    }

    /// This plan for who keeps the answers. What it named is still all that may go.
    #[must_use]
    pub fn without_answers(mut self) -> Self {
        self.asked = self.asked.without(&std::mem::take(&mut self.answering));
        self.answers.clear();
        self
    }

    /// Notes a message that goes: asked for, or related to what is.
    pub(crate) fn note(&mut self, stored: &StoredMessage) {
        let place = match stored.message.restored_from() {
            _ if self.answering.contains(stored.seq) => &mut self.answers,
            _ if self.asked.contains(stored.seq) => &mut self.messages,
            Some(_) => &mut self.copies,
            None => &mut self.originals,
        };
        place.push(stored.seq);
    }

    /// Completes the plan once all messages are noted.
    pub(crate) fn finish(
        &mut self,
        (related, hidden): (&SeqSet, &SeqSet),
        vacant: &SeqSet,
        profile: &Profile,
        snapshots: &[Snapshot],
    ) {
        let Self { messages, answers, originals, copies, hidden: over, .. } = self;
        [messages, answers, originals, copies, over].into_iter().for_each(|n| n.sort_unstable());
        let there = self.messages.iter().chain(&self.answers);
        let there: SeqSet = there.map(|number| *number..=*number).collect();
        self.lost = self.asked.without(vacant).without(&there).count();
        self.numbers = related.clone();
        self.numbers.extend(hidden.ranges());
        self.summaries = profile.made_of(related);
        self.proposed_title = profile.title_is_proposed;
        self.note_snapshots(snapshots, profile, related);
        self.description = self.is_whole && profile.has_words();
        self.keeps_context = profile.assigned_persona.is_some();
    }

    /// How many messages go.
    pub fn message_count(&self) -> usize {
        let Self { messages, answers, originals, copies, hidden, .. } = self;
        [messages, answers, originals, copies, hidden].into_iter().map(Vec::len).sum()
    }

    /// Whether there is nothing to forget.
    pub fn is_nothing(&self) -> bool {
        self.message_count() == 0
            && self.lost == 0
            && self.summaries == 0
            && !self.description
            && !self.proposed_title
            && [&self.changed_snapshots, &self.deleted_snapshots, &self.closed_snapshots]
                .iter()
                .all(|snapshots| snapshots.is_empty())
            && self.artifacts.is_empty()
    }

    /// Whether the whole conversation is forgotten.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The numbers of everything that is removed.
    pub fn numbers(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        self.numbers.ranges()
    }

    pub(crate) fn asked(&self) -> ForgetRequest {
        match self.is_whole {
            true => ForgetRequest::All,
            false => ForgetRequest::Planned(self.asked.clone(), self.answering.clone()),
        }
    }

    /// Whether everything in this plan is also in the announced one.
    pub(crate) fn is_within(&self, announced: &Self) -> bool {
        let all = |now: &[String], then: [&[String]; 2]| {
            now.iter().all(|id| then.iter().any(|then| then.contains(id)))
        };
        let (changed, deleted) = (&announced.changed_snapshots, &announced.deleted_snapshots);
        self.numbers.without(&announced.numbers).is_empty()
            && all(&self.changed_snapshots, [changed, deleted])
            && all(&self.deleted_snapshots, [deleted, &[]])
            && all(&self.closed_snapshots, [&announced.closed_snapshots, deleted])
            && self.summaries <= announced.summaries
            && (announced.proposed_title || !self.proposed_title)
            && all(&self.artifacts, [&announced.artifacts, &[]])
            && all(&self.backups, [&announced.backups, &[]])
            && (announced.description || !self.description)
            && (self.keeps_context || !announced.keeps_context)
    }

    fn note_snapshots(&mut self, snapshots: &[Snapshot], profile: &Profile, gone: &SeqSet) {
        for snapshot in snapshots {
            match snapshot.count_of(gone) {
                0 => {}
                held if held == snapshot.messages.len() => {
                    self.deleted_snapshots.push(snapshot.id.clone());
                }
                _ => self.changed_snapshots.push(snapshot.id.clone()),
            }
        }
        let opened = |id: &str| snapshots.iter().any(|snapshot| snapshot.id == id);
        let closed = profile.listed().map(|(id, _)| id).filter(|id| !opened(id));
        self.closed_snapshots = closed.map(str::to_owned).collect();
        if self.is_whole {
            self.changed_snapshots.clear();
            self.closed_snapshots.clear();
            self.deleted_snapshots.extend(profile.snapshots().map(str::to_owned));
            self.deleted_snapshots.sort_unstable();
            self.deleted_snapshots.dedup();
        }
    }
}

/// The outcome of forgetting.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForgetReport {
    /// How many more numbers are recorded as forgotten than before, with or without a file.
    pub numbers: u64,
    /// The numbers of the messages whose files were removed.
    pub removed: Vec<u64>,
    /// From how many snapshots messages were removed. Empty ones were deleted.
    pub snapshots: usize,
    /// How many daily backups of the conversation were deleted. Those in the plan that could not be are still there.
    pub backups: usize,
    /// Files with a forgotten number that do not open and may be something else. They stay, are never read, and can
    /// be removed by hand.
    pub left: Vec<Finding>,
    /// The plan that was carried out.
    pub plan: ForgetPlan,
}

/// References in messages that are about to be forgotten.
#[derive(Debug, Default)]
pub(crate) struct MessageRefs {
    /// The numbers that somebody wants forgotten.
    pub(crate) wanted: SeqSet,
    pub(crate) tombstones: ImportTombstones,
    /// The artifacts that have the messages' own words.
    pub(crate) moved: BTreeSet<String>,
}

impl MessageRefs {
    /// For messages of which somebody wants these forgotten. Limits remove the others.
    pub(crate) fn wanting(wanted: SeqSet) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// Notes a message. If somebody wants it forgotten, no import is to bring it back, even from another store that has it.
    pub(crate) fn note(&mut self, stored: &StoredMessage) {
        let StoredMessage { scope, seq, message, .. } = stored;
        match self.wanted.contains(*seq) {
            true => self.tombstones.origins.extend(Origin::of_stored(scope, *seq, message)),
            false => self.tombstones.expired.extend(Origin::of(message)),
        }
        self.moved.extend(message.moved_to().map(str::to_owned));
    }

    /// The ids of the artifacts that hold their words.
    pub(crate) fn moved(&self) -> impl Iterator<Item = &String> {
        self.moved.iter()
    }

    /// The artifacts that go with them.
    pub(crate) fn artifacts(&self, profile: &Profile) -> Vec<String> {
        self.moved.iter().filter(|id| profile.artifact(id).is_some()).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::crypto::EncryptionKey;
    use crate::error::Error;
    use crate::message::{ChatMessage, ChatRole};
    use crate::store::{ConversationStore, HiddenMessages, Retention, StoreOptions, Summary};
    use jiff::Timestamp;

    #[tokio::test]
    async fn a_plan_tells_of_summaries_and_of_messages_over_the_limits() {
        let store = StoreOptions::new(EncryptionKey::generate().unwrap());
        let store = store.open_in_memory().await.unwrap();
        let now = Timestamp::UNIX_EPOCH;
        let say = async |role| {
            store.append_message(ChatMessage::at(role, "words", now)).await.unwrap();
        };
        for _ in 0..3 {
            say(ChatRole::User).await;
            say(ChatRole::Assistant).await;
        }
        let summary = Summary::new(None, (now, now), std::iter::once(3..=4).collect(), "x".into());
        assert!(store.install_summary(summary, None, false).await.unwrap());
        let four = Some(Retention::FOREVER.max_messages(4));
        let effect = store.limits_effect(four).await.unwrap();
        store.change_limits(four, HiddenMessages::Keep, &effect).await.unwrap();
        let plan = store.plan_forget(&[3..=3]).await.unwrap();
        assert_eq!((plan.summaries, &plan.hidden[..]), (1, &[1, 2][..]));
        let forgotten = store.forget_planned(&plan).await.unwrap();
        assert_eq!(forgotten.removed, [1, 2, 3], "nothing hidden takes the place of what goes");
        assert!(store.profile().await.unwrap().summary(None).is_none());
        let all = store.plan_forget_all().await.unwrap();
        assert_eq!(all.messages, [4, 5, 6]);
        say(ChatRole::User).await;
        let refused = store.forget_planned(&all).await;
        assert!(matches!(refused, Err(Error::MoreThanAnnounced)), "{refused:?}");
        store.forget_all().await.unwrap();
        assert!(store.plan_forget_all().await.unwrap().is_nothing());
    }

    #[tokio::test]
    async fn answers_go_with_what_they_answer_in_their_own_thread_and_no_further() {
        let store = StoreOptions::new(EncryptionKey::generate().unwrap());
        let store = store.open_in_memory().await.unwrap();
        let say = async |role, thread: Option<&str>| {
            let mut message = ChatMessage::at(role, "words", Timestamp::UNIX_EPOCH);
            message.thread_id = thread.map(str::to_owned);
            store.append_message(message).await.unwrap();
        };
        say(ChatRole::User, None).await;
        say(ChatRole::Tool, None).await;
        say(ChatRole::User, Some("hall")).await;
        say(ChatRole::Assistant, None).await;
        say(ChatRole::Assistant, Some("hall")).await;
        say(ChatRole::User, None).await;
        say(ChatRole::Assistant, None).await;
        let planned = async |seq| store.plan_forget_exchanges(&[seq..=seq]).await.unwrap();
        assert_eq!(planned(1).await.answers, [2, 4]);
        assert_eq!(planned(3).await.answers, [5]);
        assert!(planned(7).await.answers.is_empty());
        let kept = planned(6).await.without_answers();
        assert_eq!(store.forget_planned(&kept).await.unwrap().removed, [6]);
        assert_eq!(store.forget_planned(&planned(1).await).await.unwrap().removed, [1, 2, 4]);
    }
}
