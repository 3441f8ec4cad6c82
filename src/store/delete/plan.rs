//! What a forgetting deletes: the same account is announced before it and carried out by it.

use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::store::artifact::artifact_files;
use crate::store::commit::committer::Pen;
use crate::store::delete::cleanup;
use crate::store::delete::forget;
use crate::store::delete::forget::{Forgotten, Told, Unread, survey};
use crate::store::folder::document;
use crate::store::folder::document::Document;
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::finding::Finding;
use crate::store::record::seq_set::Erased;
use crate::store::record::snapshot::Snapshot;
use crate::store::settings::profile::Profile;
use crate::store::snapshot::restore::with_copies;
use crate::store::snapshot::snapshot_files;

/// What is asked to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    Numbers(Vec<RangeInclusive<u64>>),
    /// The whole conversation.
    All,
}

/// What forgetting would delete, worked out before anybody is asked. Numbers are sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForgetPlan {
    /// The messages that were asked for.
    pub messages: Vec<u64>,
    /// The messages that some of these are restored copies of.
    pub originals: Vec<u64>,
    /// Other copies of the same messages, which were restored from snapshots.
    pub copies: Vec<u64>,
    /// Messages that the conversation's limits hide already: they would be shown again in place of what goes.
    pub hidden: Vec<u64>,
    /// How many numbers hold no message that opens. They are recorded as forgotten.
    pub lost: u64,
    /// The snapshots that messages are taken out of, and the summary with them.
    pub changed_snapshots: Vec<String>,
    /// The snapshots of which nothing is left.
    pub deleted_snapshots: Vec<String>,
    /// The snapshots that cannot be opened, and are never read again, since they may hold any of the messages.
    pub closed_snapshots: Vec<String>,
    /// How many summaries are withdrawn, because they are made of some of the messages.
    pub summaries: usize,
    /// Whether the title that a model proposed is withdrawn.
    pub proposed_title: bool,
    /// The artifacts that are deleted.
    pub artifacts: Vec<String>,
    /// Whether the title, tags, notes and costs go: only with the whole conversation.
    pub description: bool,
    /// Whether the conversation is a context, which stays with its name, its personality and its limits.
    pub keeps_context: bool,
    /// What was asked for, and with it all that is related to it or hidden.
    asked: Erased,
    numbers: Erased,
    is_whole: bool,
}

impl ForgetPlan {
    /// How many messages go.
    pub fn message_count(&self) -> usize {
        self.messages.len() + self.originals.len() + self.copies.len() + self.hidden.len()
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

    /// Whether the whole conversation goes.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The numbers of all that goes.
    pub fn numbers(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        self.numbers.ranges()
    }

    pub(crate) fn asked(&self) -> Asked {
        match self.is_whole {
            true => Asked::All,
            false => Asked::Numbers(self.asked.ranges().collect()),
        }
    }

    /// Whether nothing goes that does not go by another plan.
    fn is_within(&self, announced: &Self) -> bool {
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
            && (announced.description || !self.description)
            && (self.keeps_context || !announced.keeps_context)
    }

    fn note_snapshots(&mut self, snapshots: &[Snapshot], profile: &Profile, gone: &Erased) {
        for snapshot in snapshots {
            match snapshot.held(gone) {
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

/// A plan with what is needed to carry it out. For the lock's holder.
pub(crate) struct Prepared {
    plan: ForgetPlan,
    snapshots: Vec<Snapshot>,
    unread: Vec<Finding>,
    /// What was asked for, with copies and originals.
    related: Erased,
    told: Told,
}

impl Prepared {
    /// # Errors
    /// Where something that may be concerned can only be read under another key, by a newer program or another time.
    pub(crate) fn new(
        reader: &Reader,
        pen: &Pen<'_>,
        tail: &mut Tail,
        asked: &Asked,
    ) -> Result<Self> {
        let last = tail.last_seq;
        let is_whole = *asked == Asked::All;
        let asked: Erased = match asked {
            Asked::All => std::iter::once(1..=last).collect(),
            Asked::Numbers(ranges) => {
                ranges.iter().map(|range| *range.start()..=(*range.end()).min(last)).collect()
            }
        };
        let (snapshots, unread) = snapshot_files::all(pen.folder, &tail.profile)?;
        let related = with_copies(reader, tail, &snapshots, asked.clone())?;
        // What the limits hide is not to take the place of what goes.
        let hidden = cleanup::hidden_now(reader, pen, tail)?.without(&related);
        let (mut told, mut plan) = (Told::default(), ForgetPlan { is_whole, ..Default::default() });
        survey(reader, tail, &related.without(&tail.erased), Unread::Refused, |stored| {
            told.note(stored);
            let place = match stored.message.restored_from() {
                _ if asked.contains(stored.seq) => &mut plan.messages,
                Some(_) => &mut plan.copies,
                None => &mut plan.originals,
            };
            place.push(stored.seq);
        })?;
        survey(reader, tail, &hidden.without(&tail.erased), Unread::Recorded, |stored| {
            told.note(stored);
            plan.hidden.push(stored.seq);
        })?;
        for numbers in [&mut plan.messages, &mut plan.originals, &mut plan.copies, &mut plan.hidden]
        {
            numbers.sort_unstable();
        }
        let there: Erased = plan.messages.iter().map(|number| *number..=*number).collect();
        plan.lost = asked.without(&tail.vacant()).without(&there).count();
        (plan.asked, plan.numbers) = (asked, related.clone());
        plan.numbers.extend(hidden.ranges());
        let profile = &tail.profile;
        plan.summaries = profile.made_of(&related);
        plan.proposed_title = profile.has_proposed_title();
        plan.artifacts = match is_whole {
            true => profile.artifacts().map(str::to_owned).collect(),
            false => told.artifacts(profile),
        };
        plan.note_snapshots(&snapshots, profile, &related);
        plan.description = is_whole && profile.has_words();
        plan.keeps_context = profile.character.is_some();
        Ok(Self { plan, snapshots, unread, related, told })
    }

    pub(crate) fn plan(self) -> ForgetPlan {
        self.plan
    }

    /// # Errors
    /// [`Error::MoreThanAnnounced`] where something would go that was not announced.
    pub(crate) fn check(&self, announced: &ForgetPlan) -> Result<()> {
        match self.plan.is_within(announced) {
            true => Ok(()),
            false => Err(Error::MoreThanAnnounced),
        }
    }

    /// Takes messages out of snapshots and summaries, records their numbers as forgotten, and removes their files.
    pub(crate) fn carry_out(
        self,
        reader: &Reader,
        pen: &Pen<'_>,
        tail: &mut Tail,
    ) -> Result<Forgotten> {
        let Self { plan, snapshots, mut unread, related, told } = self;
        let withdrawn = snapshot_files::withdraw(pen, tail, (snapshots, &unread), &related)?;
        pen.withdraw_summaries(tail, &related)?;
        let mut forgotten = forget::erase_told(reader, pen, tail, &plan.numbers, &told)?;
        if plan.is_whole {
            forget_rest(pen, tail, &plan)?;
            unread.clear();
        }
        forgotten.left.append(&mut unread);
        forgotten.snapshots = withdrawn;
        forgotten.plan = plan;
        tracing::info!(removed = forgotten.removed.len(), "forgot");
        Ok(forgotten)
    }
}

/// Deletes what a conversation holds beside its messages.
fn forget_rest(pen: &Pen<'_>, tail: &mut Tail, plan: &ForgetPlan) -> Result<()> {
    for id in &plan.deleted_snapshots {
        if tail.profile.revision(id).is_some() {
            snapshot_files::delete(pen, tail, id)?;
        }
    }
    artifact_files::delete(pen, tail, plan.artifacts.iter().map(String::as_str))?;
    if plan.description {
        pen.change_profile(tail, Profile::forget_words)?;
    }
    // How long its texts were tells which languages were spoken.
    match document::open(pen.folder, Document::Calibration)? {
        Some(_) => pen.replace(Document::Calibration, b"{}"),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::EncryptionKey;
    use crate::message::{ChatMessage, ChatRole};
    use crate::store::{Compaction, ConversationStore, HiddenMessages, Retention, StoreOptions};
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
        let summary =
            Compaction::new(None, (now, now), std::iter::once(3..=4).collect(), "x".into());
        assert!(store.compact(summary, None, false).await.unwrap());
        let four = Some(Retention::FOREVER.max_messages(4));
        let effect = store.limits_effect(four).await.unwrap();
        store.change_limits(four, HiddenMessages::Keep, &effect).await.unwrap();
        let plan = store.plan_forget(&[3..=3]).await.unwrap();
        assert_eq!((plan.summaries, &plan.hidden[..]), (1, &[1, 2][..]));
        let forgotten = store.forget_planned(&plan).await.unwrap();
        assert_eq!(forgotten.removed, [1, 2, 3], "nothing hidden takes the place of what goes");
        assert!(store.profile().await.unwrap().compaction(None).is_none());
        let all = store.plan_forget_all().await.unwrap();
        assert_eq!(all.messages, [4, 5, 6]);
        say(ChatRole::User).await;
        let refused = store.forget_planned(&all).await;
        assert!(matches!(refused, Err(Error::MoreThanAnnounced)), "{refused:?}");
        store.forget_all().await.unwrap();
        assert!(store.plan_forget_all().await.unwrap().is_nothing());
    }
}
