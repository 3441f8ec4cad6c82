//! The tail: a conversation's newest messages and state, cached between reads.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::store::folder::{Folder, HeadState, settings};
use crate::store::read::window::Window;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::head::Head;
use crate::store::record::name::pack_name::PackName;
use crate::store::record::name::{NameTime, RecordName};
use crate::store::record::profile::Profile;
use crate::store::record::read_result::ReadResult;
use crate::store::record::retention::{Horizon, NewestEnd, Retention};
use crate::store::record::seq_set::SeqSet;

/// How many of the newest messages stay in memory.
pub(super) const KEPT: usize = 256;
/// How many bytes of message text stay in memory.
const KEPT_BYTES: usize = 1 << 20;

/// A conversation's newest messages and state, as of one version of its head.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    /// The head file's bytes. Each change rewrites it with another nonce.
    pub(crate) head_bytes: Option<Vec<u8>>,
    pub(crate) head: HeadState,
    /// The highest number assigned so far.
    pub(crate) last_seq: u64,
    /// The time of the newest record that was not forgotten.
    pub(crate) newest: NameTime,
    pub(crate) erased: SeqSet,
    /// The numbers that somebody wanted forgotten, as the forget records there say. Known only after a scan.
    pub(crate) wanted: SeqSet,
    /// The forget records in force.
    pub(crate) forgets: Vec<RecordName>,
    /// Forgotten files that are there again.
    pub(crate) resurrected: Vec<RecordName>,
    /// Packs that may have forgotten records: their count differs from that of the numbers that should be in them.
    pub(crate) unpurged: Vec<PackName>,
    /// Packs beyond the head: their writer was interrupted before it could record them.
    pub(crate) ahead: Vec<PackName>,
    /// The number of loose messages. Known only after a scan of the folder.
    pub(crate) loose: usize,
    /// Whether the folder was scanned, and not only what its head names was read.
    pub(crate) is_survey: bool,
    /// Whether another program may have changed names in the folder since the head was written.
    pub(crate) is_disturbed: bool,
    pub(crate) profile: Arc<Profile>,
    /// The retention limits, of this conversation or of the store.
    pub(crate) retention: Retention,
    pub(super) messages: VecDeque<Arc<StoredMessage>>,
    /// How many bytes of text `messages` has.
    pub(super) bytes: usize,
    /// Whether `messages` has all messages that have not expired.
    pub(super) whole: bool,
    /// What the limit shows, if that takes more than `messages`.
    pub(super) window: Option<Window>,
    pub(crate) skipped: Vec<Finding>,
}

impl Tail {
    /// Whether nothing has changed on disk since this tail was read. Files that could not be read then make it
    /// outdated.
    pub(crate) fn is_current(&self, folder: &Folder) -> Result<bool> {
        Ok(self.head_bytes.is_some()
            && matches!(self.head, HeadState::Known(_))
            && self.unreadable().next().is_none()
            && self.head_bytes == folder.head_bytes()?)
    }

    /// Whether a writer may rely on this tail: it is of a scanned folder, and nobody has changed names without
    /// updating the head.
    pub(crate) fn is_intact(&self, folder: &Folder) -> Result<bool> {
        Ok(self.is_survey
            && match self.head {
                HeadState::Known(head) => head.stamp.is_none() || folder.matches_stamps(&head)?,
                HeadState::Absent | HeadState::Damaged => true,
            })
    }

    /// Whether there are no findings.
    pub(crate) fn is_sound(&self) -> bool {
        self.skipped.is_empty()
    }

    /// The newest `n` messages, if that many are in memory or no more exist.
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

    /// The newest `n` visible messages, if that many are in memory or no more exist.
    pub(crate) fn shown(&self, n: usize, now: impl FnOnce() -> Timestamp) -> Option<ReadResult> {
        if self.retention.is_forever() {
            return self.newest(n);
        }
        match self.horizon(now)? {
            Horizon::All => self.newest(n),
            Horizon::Nothing | Horizon::Expired => self.newest(0),
            Horizon::From { first, .. } => {
                let hidden = self.messages.partition_point(|message| message.name < first);
                match hidden {
                    0 => self.newest(n),
                    _ => self.newest(n.min(self.messages.len() - hidden)),
                }
            }
        }
    }

    /// Which part of the conversation is visible; `None` if too few messages are in memory to decide and the names were
    /// not counted.
    pub(crate) fn horizon(&self, now: impl FnOnce() -> Timestamp) -> Option<Horizon> {
        let unread = self.unreadable().filter(|finding| finding.record().is_some()).count();
        let end = NewestEnd {
            is_whole: self.whole,
            last_said: self.last_said(),
            unread: unread as u64,
            stored: self.stored(),
        };
        let horizon = Horizon::within(self.retention, self.messages.iter(), end, now);
        Some(horizon.or_else(|| Some(self.window()?.horizon()))?.after(self.profile.expired))
    }

    /// What these limits show, if the names were counted.
    fn window(&self) -> Option<&Window> {
        self.window.as_ref().filter(|window| window.is_of(self.retention.most()))
    }

    /// How many messages a horizon of this tail shows, as far as numbers and names tell.
    pub(crate) fn shown_count(&self, horizon: Horizon) -> u64 {
        match (horizon, self.window()) {
            (Horizon::Nothing | Horizon::Expired, _) => 0,
            _ if self.has_all_of(horizon) => self.shown_from(horizon).count() as u64,
            (_, Some(window)) => window.count,
            (_, None) => self.stored(),
        }
    }

    /// Whether all messages that a horizon shows are in memory.
    pub(super) fn has_all_of(&self, horizon: Horizon) -> bool {
        self.whole || self.messages.front().is_some_and(|oldest| !horizon.shows(oldest.name))
    }

    /// The most messages that there can be, as far as numbers tell: without those that have expired or are forgotten.
    pub(crate) fn stored(&self) -> u64 {
        let mut others = self.without_message();
        others.extend(std::iter::once(1..=self.profile.expired));
        self.last_seq.saturating_sub(others.count())
    }

    /// The time of the newest message. If that message does not open, the time comes from its name.
    pub(crate) fn last_said(&self) -> Option<Timestamp> {
        let unopened = self.skipped.iter().filter_map(Finding::record);
        let unopened = unopened.filter_map(|name| name.time.timestamp()).max();
        self.messages.back().map(|last| last.ordered_at()).max(unopened)
    }

    /// Findings about files that the system could not read at the moment.
    pub(crate) fn unreadable(&self) -> impl Iterator<Item = &Finding> {
        self.skipped.iter().filter(|finding| matches!(finding.kind, FindingKind::Unreadable(_)))
    }

    /// The numbers that the store had before an older copy was put back.
    pub(crate) fn put_back(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        let is_put_back = |found: &&Finding| matches!(found.kind, FindingKind::PutBack { .. });
        self.skipped.iter().filter(is_put_back).filter_map(Finding::numbers)
    }

    /// Whether the settings could be read.
    pub(crate) fn knows_settings(&self) -> bool {
        !self.skipped.iter().any(settings::is_about_settings)
    }

    /// Refuses to go by settings that cannot be read.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub(crate) fn check_settings(&self, folder: &Folder) -> Result<()> {
        let Some(lost) = self.skipped.iter().find(|finding| settings::is_about_settings(finding))
        else {
            return Ok(());
        };
        let place = folder.directory.path().join(lost.file.as_deref().unwrap_or_default());
        let reason = "the conversation's settings cannot be read; a repair continues without them";
        Err(Error::damaged(place, reason))
    }

    /// Takes over settings that were published. The head does not name them yet.
    pub(crate) fn set_profile(&mut self, profile: Arc<Profile>, default: Retention) {
        self.retention = profile.retention.unwrap_or(default);
        if let HeadState::Known(head) = &mut self.head {
            *head = head.with_profile(profile.rev);
        }
        self.skipped.retain(|finding| {
            !settings::is_about_settings(finding)
                && (profile.presets_are_unknown || !settings::is_about_presets(finding))
        });
        if self.profile.expired != profile.expired {
            // The next scan reads what comes after them.
            self.messages.retain(|stored| stored.seq > profile.expired);
            self.bytes = self.messages.iter().map(|stored| stored.message.content.len()).sum();
            self.whole |= profile.expired >= self.last_seq;
            self.window = None;
        }
        self.profile = profile;
    }

    /// The messages in memory, oldest first.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &Arc<StoredMessage>> {
        self.messages.iter()
    }

    /// The visible messages in memory, oldest first.
    pub(crate) fn shown_from(&self, horizon: Horizon) -> impl Iterator<Item = &Arc<StoredMessage>> {
        self.messages().filter(move |stored| horizon.shows(stored.name))
    }

    /// The numbers without a message: those forgotten and those of the forget records.
    pub(crate) fn without_message(&self) -> SeqSet {
        self.erased.with(&self.forgets)
    }

    /// Adds published messages, in any order.
    pub(crate) fn add(&mut self, messages: &[Arc<StoredMessage>]) {
        let reaches_back = self.messages.front().map(|oldest| oldest.name).filter(|_| !self.whole);
        let mut is_sorted = true;
        for message in messages {
            self.last_seq = self.last_seq.max(message.seq);
            self.newest = self.newest.max(message.name.time);
            if reaches_back.is_none_or(|oldest| oldest < message.name) {
                is_sorted &= self.messages.back().is_none_or(|last| last.name < message.name);
                self.messages.push_back(Arc::clone(message));
                self.bytes += message.message.content.len();
            }
            if self.window.as_mut().is_some_and(|window| !window.add(message.name)) {
                self.window = None;
            }
        }
        if !is_sorted {
            self.messages.make_contiguous().sort_unstable_by_key(|message| message.name);
        }
        while self.messages.len() > KEPT || (self.bytes > KEPT_BYTES && self.messages.len() > 1) {
            let Some(oldest) = self.messages.pop_front() else {
                break;
            };
            self.bytes -= oldest.message.content.len();
            self.whole = false;
        }
        self.messages.shrink_to(KEPT * 2);
    }

    /// Whether this store has never written to the folder. Another system may have.
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

    /// Stores the head that was written.
    pub(crate) fn set_head(&mut self, head: Head, line: Vec<u8>) {
        self.head = HeadState::Known(head);
        self.head_bytes = Some(line);
        let of_head = [FindingKind::HeadMissing, FindingKind::HeadDamaged];
        self.skipped.retain(|finding| !of_head.contains(&finding.kind));
    }

    /// The names of the messages in memory, newest first.
    pub(crate) fn names(&self) -> impl Iterator<Item = RecordName> + '_ {
        self.messages.iter().rev().map(|message| message.name)
    }

    /// The number of the newest forget record in force; 0 if there is none.
    pub(crate) fn last_forget(&self) -> u64 {
        self.forgets.iter().map(|name| name.seq).max().unwrap_or(0)
    }

    /// The head that records this tail, with these change stamps.
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
