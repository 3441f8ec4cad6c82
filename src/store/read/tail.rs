//! What is known of a conversation's newest end, kept in memory between reads.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::Timestamp;

use crate::error::Result;
use crate::store::folder::{Folder, HeadState};
use crate::store::record::encoding::StoredMessage;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::head::Head;
use crate::store::record::name::{NameTime, RecordName};
use crate::store::record::pack_name::PackName;
use crate::store::record::read_result::ReadResult;
use crate::store::record::retention;
use crate::store::record::retention::{Horizon, Retention};
use crate::store::record::seq_set::SeqSet;
use crate::store::settings::presets;
use crate::store::settings::profile;
use crate::store::settings::profile::Profile;

/// How many of the newest messages stay in memory as more are appended.
pub(super) const KEPT: usize = 256;
/// How many bytes of words stay in memory as more are appended.
const KEPT_BYTES: usize = 1 << 20;

/// The newest end of a conversation as of one state of its head.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    /// The head file's bytes; it is rewritten, with another nonce, at every change.
    pub(crate) head_bytes: Option<Vec<u8>>,
    pub(crate) head: HeadState,
    /// The highest number given so far.
    pub(crate) last_seq: u64,
    /// The newest live record's time.
    pub(crate) newest: NameTime,
    pub(crate) erased: SeqSet,
    /// The forget records in force.
    pub(crate) forgets: Vec<RecordName>,
    /// Files that were forgotten and are there again.
    pub(crate) resurrected: Vec<RecordName>,
    /// Packs that may hold forgotten records: their count is not that of the numbers that are not forgotten.
    pub(crate) unpurged: Vec<PackName>,
    /// Packs that go beyond the head: their writer was interrupted before it could say that they are durable.
    pub(crate) ahead: Vec<PackName>,
    /// How many messages lie in files of their own; known only where the folder itself was looked at.
    pub(crate) loose: usize,
    /// Whether the folder itself was looked at, and not only what its head names.
    pub(crate) is_survey: bool,
    /// Whether somebody else may have changed names in it since the head was written.
    pub(crate) is_disturbed: bool,
    pub(crate) profile: Arc<Profile>,
    /// How much is kept, of this conversation or of all.
    pub(crate) retention: Retention,
    pub(super) messages: VecDeque<Arc<StoredMessage>>,
    /// Whether `messages` are all there are.
    pub(super) whole: bool,
    pub(super) skipped: Vec<Finding>,
}

impl Tail {
    /// Whether nothing has changed on disk since this was read. What could not be read then may be readable now.
    pub(crate) fn is_current(&self, folder: &Folder) -> Result<bool> {
        Ok(self.head_bytes.is_some()
            && matches!(self.head, HeadState::Known(_))
            && self.unreadable().next().is_none()
            && self.head_bytes == folder.head_bytes()?)
    }

    /// Whether a writer may go by this: it is of the whole folder, and nobody has changed names in it without telling.
    pub(crate) fn is_intact(&self, folder: &Folder) -> Result<bool> {
        Ok(self.is_survey
            && match self.head {
                HeadState::Known(head) => head.mark.is_none() || folder.matches_stamps(&head)?,
                HeadState::Absent | HeadState::Damaged => true,
            })
    }

    /// Whether nothing was found that readers should hear of.
    pub(crate) fn is_sound(&self) -> bool {
        self.skipped.is_empty()
    }

    /// The newest `n`, if that many are in memory or there are no more.
    pub(crate) fn newest(&self, n: usize) -> Option<ReadResult> {
        let enough = self.whole || n <= self.messages.len();
        enough.then(|| ReadResult {
            messages: self
                .messages
                .range(self.messages.len().saturating_sub(n)..)
                .cloned()
                .collect(),
            last_seq: self.last_seq,
            skipped: self.skipped.clone(),
        })
    }

    /// The newest `n` of those that are not hidden, if that many are in memory or there are no more.
    pub(crate) fn shown(&self, n: usize, now: impl FnOnce() -> Timestamp) -> Option<ReadResult> {
        if self.retention.is_forever() {
            return self.newest(n);
        }
        match self.horizon(now)? {
            Horizon::All => self.newest(n),
            Horizon::Nothing | Horizon::Expired => self.newest(0),
            Horizon::From(first) => {
                let hidden = self.messages.partition_point(|message| message.name < first);
                self.newest(n.min(self.messages.len() - hidden))
            }
        }
    }

    /// From where on messages are shown; `None` where too few are in memory to tell.
    pub(crate) fn horizon(&self, now: impl FnOnce() -> Timestamp) -> Option<Horizon> {
        if self.retention.is_forever() {
            return Some(Horizon::All);
        }
        if self.messages.is_empty() {
            return self.whole.then_some(Horizon::All);
        }
        let expiry = self.last_said().and_then(|last| self.retention.expiry(last));
        if expiry.is_some_and(|expiry| expiry < now()) {
            return Some(Horizon::Expired);
        }
        let Some(most) = self.retention.max_messages else {
            return Some(Horizon::All);
        };
        if !self.whole && self.messages.len() < self.retention.needed() {
            return None;
        }
        // What cannot be read just now has its place too, or the window would reach back over what was hidden.
        let unread = self.unreadable().filter(|finding| finding.record().is_some()).count();
        let most = (most.get() as usize).saturating_sub(unread);
        if self.messages.len() <= most {
            return Some(Horizon::All);
        }
        let start = retention::start(self.messages.iter().map(|stored| &stored.message), most);
        Some(self.messages.get(start).map_or(Horizon::Nothing, |first| Horizon::From(first.name)))
    }

    /// When the newest message was said, be it one that does not open: of that one, its name tells.
    pub(crate) fn last_said(&self) -> Option<Timestamp> {
        let unopened = self.skipped.iter().filter_map(Finding::record);
        let unopened = unopened.filter_map(|name| name.time.timestamp()).max();
        self.messages.back().map(|last| last.ordered_at()).max(unopened)
    }

    /// What the system could not read just now.
    pub(crate) fn unreadable(&self) -> impl Iterator<Item = &Finding> {
        self.skipped.iter().filter(|finding| matches!(finding.kind, FindingKind::Unreadable(_)))
    }

    /// The numbers that something is the matter with.
    pub(crate) fn damaged_seqs(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        let numbers = self.skipped.iter().filter_map(|finding| finding.seqs);
        numbers.map(|(first, last)| first..=last)
    }

    /// Whether it is known what the settings say.
    pub(crate) fn knows_settings(&self) -> bool {
        !self.skipped.iter().any(profile::is_about)
    }

    /// Notes settings that have been published; the head has to tell of them yet.
    pub(crate) fn set_profile(&mut self, profile: Arc<Profile>, default: Retention) {
        self.retention = profile.retention.unwrap_or(default);
        if let HeadState::Known(head) = &mut self.head {
            *head = head.with_profile(profile.rev);
        }
        self.skipped.retain(|finding| {
            !profile::is_about(finding)
                && (profile.presets_are_unknown || !presets::is_about(finding))
        });
        self.profile = profile;
    }

    /// The messages in memory, oldest first.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &Arc<StoredMessage>> {
        self.messages.iter()
    }

    /// Those of them that are shown from there on, oldest first.
    pub(crate) fn shown_from(&self, horizon: Horizon) -> impl Iterator<Item = &Arc<StoredMessage>> {
        self.messages().filter(move |stored| horizon.shows(stored.name))
    }

    /// The numbers that hold no message: those forgotten, and those of the records that say so.
    pub(crate) fn without_message(&self) -> SeqSet {
        self.erased.with(&self.forgets)
    }

    /// Notes messages that have been published, in any order.
    pub(crate) fn add(&mut self, messages: &[Arc<StoredMessage>]) {
        let reaches_back = self.messages.front().map(|oldest| oldest.name).filter(|_| !self.whole);
        let mut is_sorted = true;
        for message in messages {
            self.last_seq = self.last_seq.max(message.seq);
            self.newest = self.newest.max(message.name.time);
            if reaches_back.is_none_or(|oldest| oldest < message.name) {
                is_sorted &= self.messages.back().is_none_or(|last| last.name < message.name);
                self.messages.push_back(Arc::clone(message));
            }
        }
        if !is_sorted {
            self.messages.make_contiguous().sort_unstable_by_key(|message| message.name);
        }
        let mut bytes: usize = self.messages.iter().map(|m| m.message.content.len()).sum();
        let least = self.retention.needed().max(1);
        while self.messages.len() > KEPT.max(least)
            || (bytes > KEPT_BYTES && self.messages.len() > least)
        {
            let Some(oldest) = self.messages.pop_front() else {
                break;
            };
            bytes -= oldest.message.content.len();
            self.whole = false;
        }
        self.messages.shrink_to(KEPT.max(least) * 2);
    }

    /// Whether this store has never written to the folder; another system may have.
    pub(crate) fn is_fresh(&self) -> bool {
        use FindingKind::{Damaged, Foreign, LegacyFormat, NotPlain};
        let not_ours = |finding: &Finding| {
            matches!(finding.kind, LegacyFormat | Damaged(_) | Foreign | NotPlain(_))
        };
        self.head == HeadState::Absent
            && self.last_seq == 0
            && self.messages.is_empty()
            && self.skipped.iter().all(not_ours)
    }

    /// Notes the head that has been written.
    pub(crate) fn set_head(&mut self, head: Head, line: Vec<u8>) {
        self.head = HeadState::Known(head);
        self.head_bytes = Some(line);
        let of_head = [FindingKind::HeadMissing, FindingKind::HeadDamaged];
        self.skipped.retain(|finding| !of_head.contains(&finding.kind));
    }

    /// The names of the messages in memory, the newest first.
    pub(crate) fn names(&self) -> impl Iterator<Item = RecordName> + '_ {
        self.messages.iter().rev().map(|message| message.name)
    }

    /// The number of the newest record of what was forgotten, as far as it is there.
    pub(crate) fn last_forget(&self) -> u64 {
        self.forgets.iter().map(|name| name.seq).max().unwrap_or(0)
    }

    /// The head that tells of this, in a folder with that mark.
    pub(crate) fn head_after(&self, stamps: (Option<u64>, Option<u64>)) -> Option<Head> {
        match self.head {
            HeadState::Known(head) => {
                let head = head.with_forget(self.last_forget());
                Some(head.after(self.last_seq, stamps, self.names()))
            }
            HeadState::Absent | HeadState::Damaged => None,
        }
    }
}
