//! Telling what of an export a conversation has already, has forgotten, or does not know.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::runtime::Handle;

use super::SYSTEM;
use super::parse::Head;
use crate::error::Result;
use crate::import::conversations::clear;
use crate::import::snapshot::{self, ForeignSnapshot};
use crate::import::{Foreign, ForeignMessage, ImportReport, Refusal, RefusalReason};
use crate::message::ChatMessage;
use crate::store::backup::{Body, Record};
use crate::store::erased::Erased;
use crate::store::forget::{self, Unread};
use crate::store::name::RecordName;
use crate::store::origin::Origin;
use crate::store::reader::Wanted;
use crate::store::tail::Tail;
use crate::store::{ConversationStore, FileConversationStore, Profile, Snapshot, StoredMessage};

/// How many numbers are read at a time.
const STRETCH: u64 = 4096;

/// How an export and a conversation hang together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kinship {
    /// The conversation was empty: everything goes back as it was.
    Exact,
    /// Nothing of the one was found in the other yet.
    Unknown,
    /// The one grew from the other: numbers mean the same in both.
    Same,
    /// They have nothing in common.
    None,
}

/// What is known of that so far.
pub(super) struct Merge {
    kinship: Kinship,
    scope: String,
    partial: bool,
    /// The highest number that the conversation had.
    last: u64,
    /// Whether something was said here since that the export does not have.
    diverged: bool,
    /// What was forgotten here, and the records that tell of it.
    erased: Erased,
    forgets: Vec<RecordName>,
    /// What the conversation has under these numbers.
    near: HashMap<u64, Arc<StoredMessage>>,
    read_to: u64,
    /// Messages that are missing here, until it is known whether they were forgotten.
    missing: Vec<(RecordName, ChatMessage)>,
    /// The latest moment at which a message was said that the export's settings have cleared.
    cleared: Option<Timestamp>,
    cleared_to: u64,
    new: Foreign,
    snapshots: Vec<Snapshot>,
}

impl Merge {
    pub(super) fn new(head: &Head, here: &Tail) -> Self {
        // A restore that was broken off before its first message has put the settings back.
        let is_empty =
            here.last_seq == 0 && (here.profile.rev == 0 || *here.profile == head.profile);
        let is_exact = is_empty && !head.partial;
        Self {
            kinship: if is_exact { Kinship::Exact } else { Kinship::Unknown },
            scope: head.scope.clone(),
            partial: head.partial,
            last: here.last_seq,
            diverged: false,
            erased: here.erased.clone(),
            forgets: here.forgets.clone(),
            cleared: None,
            cleared_to: head.profile.cleared.map_or(0, |cleared| cleared.seq),
            near: HashMap::new(),
            read_to: 0,
            missing: Vec::new(),
            new: Foreign::new(SYSTEM),
            snapshots: Vec::new(),
        }
    }

    pub(super) fn is_exact(&self) -> bool {
        self.kinship == Kinship::Exact
    }

    pub(super) fn is_same(&self) -> bool {
        self.kinship == Kinship::Same
    }

    /// Whether the export is another state of this very conversation, with nothing said here that it does not have.
    pub(super) fn is_same_line(&self) -> bool {
        self.is_same() && !self.diverged && !self.partial
    }

    /// The record, if it is to be put back under its own number; any other is taken care of.
    pub(super) fn take(
        &mut self,
        store: &FileConversationStore,
        record: Record,
        report: &mut ImportReport,
    ) -> Result<Option<Record>> {
        if self.is_exact() {
            return Ok(Some(record));
        }
        let seq = record.name.seq;
        if seq > self.last {
            if let Body::Forget(erased) = &record.body
                && self.is_same_line()
                && self.is_any_here(store, erased)?
            {
                // No export takes away what is here, whether or not it is the same.
                self.diverged = true;
            }
            return match record.body {
                _ if self.is_same_line() => Ok(Some(record)),
                Body::Message(message) => self.add(seq, message, report).map(|()| None),
                Body::Forget(_) => Ok(None),
            };
        }
        let Body::Message(message) = record.body else {
            if self.forgets.contains(&record.name) {
                self.kinship = Kinship::Same;
            } else if !self.erased.contains(seq) {
                self.diverged = true;
            }
            return Ok(None);
        };
        match self.there(store, seq)? {
            Some(there) if there.message == message && there.name == record.name => {
                self.kinship = Kinship::Same;
                report.already_there += 1;
            }
            Some(_) => {
                self.diverged = true;
                if self.kinship == Kinship::Unknown {
                    self.kinship = Kinship::None;
                }
                self.add(seq, message, report)?;
            }
            // What was forgotten here has left its number; any other was lost, or told that something was forgotten.
            None if !self.erased.contains(seq) => {
                self.diverged |= self.forgets.iter().any(|forget| forget.seq == seq);
                self.add(seq, message, report)?;
            }
            None => self.missing.push((record.name, message)),
        }
        Ok(None)
    }

    /// Whether the conversation has any of these messages.
    fn is_any_here(&self, store: &FileConversationStore, erased: &Erased) -> Result<bool> {
        let had: Erased = std::iter::once(1..=self.last).collect();
        let asked = had.without(&self.erased);
        let asked = asked.without(&asked.without(erased));
        let tail = store.reader().newest()?;
        let mut any = false;
        forget::survey(store.reader(), &tail, &asked, Unread::Refused, |_| any = true)?;
        Ok(any)
    }

    /// What the conversation has under a number. Numbers are asked for as they rise.
    fn there(
        &mut self,
        store: &FileConversationStore,
        seq: u64,
    ) -> Result<Option<Arc<StoredMessage>>> {
        if seq > self.read_to {
            let end = seq.saturating_add(STRETCH - 1);
            let (reading, _) = store.reader().read_kept(&Wanted::Seqs(seq..=end))?;
            // It might be the same.
            let refusal = reading.skipped.iter().find_map(crate::store::Finding::refusal);
            if let Some(refusal) = refusal {
                return Err(refusal);
            }
            self.near = reading.messages.into_iter().map(|stored| (stored.seq, stored)).collect();
            self.read_to = end;
        }
        Ok(self.near.get(&seq).cloned())
    }

    fn add(&mut self, seq: u64, message: ChatMessage, report: &mut ImportReport) -> Result<()> {
        // Under another number only its time can tell that it was cleared, and a clock may have been wrong.
        if seq <= self.cleared_to {
            self.cleared = self.cleared.max(Some(message.timestamp));
        }
        match self.foreign(seq, message) {
            Ok(foreign) => self.new.messages.push(foreign),
            Err(reason) => {
                report.refused.push(Refusal::new(format!("{}#{seq}", self.scope), reason))
            }
        }
        Ok(())
    }

    fn foreign(&self, seq: u64, message: ChatMessage) -> Result<ForeignMessage, RefusalReason> {
        let name = format!("{}#{seq}", self.scope);
        // What another system wrote is told by that.
        match Origin::of(&message) {
            Some(origin) => Ok(ForeignMessage::known(name, message, origin)),
            None => ForeignMessage::new(SYSTEM, &name, "backup", message),
        }
    }

    /// Keeps what is new, once all records are known.
    pub(super) fn end_records(
        &mut self,
        runtime: &Handle,
        store: &FileConversationStore,
        head: &Head,
        report: &mut ImportReport,
    ) -> Result<()> {
        // Of a conversation that has nothing in common with this one, only what was said before may have been forgotten.
        let newest = self.forgets.iter().map(|forget| forget.time).max();
        for (name, message) in std::mem::take(&mut self.missing) {
            if self.kinship == Kinship::None && Some(name.time) > newest {
                self.add(name.seq, message, report)?;
            } else {
                report.forgotten += 1;
            }
        }
        if self.is_exact() {
            return Ok(());
        }
        // The same line has settings of its own, as long as they were not lost.
        let state = State {
            is_same: self.is_same_line(),
            is_any_left: report.already_there > 0,
            is_forgotten: report.forgotten > 0
                && report.already_there == 0
                && self.new.messages.is_empty(),
        };
        runtime.block_on(adopt(store, head, self.cleared, state))?;
        let mut new = std::mem::replace(&mut self.new, Foreign::new(SYSTEM));
        new.messages.sort_by_key(|foreign| foreign.message.timestamp);
        let kept = runtime.block_on(new.import_into(store, |_| {}))?;
        report.taken += kept.taken;
        report.already_there += kept.already_there;
        report.forgotten += kept.forgotten;
        report.refused.extend(kept.refused);
        Ok(())
    }

    /// Keeps a snapshot until its messages are there under other numbers.
    pub(super) fn keep_snapshot(&mut self, snapshot: Snapshot) {
        self.snapshots.push(snapshot);
    }

    /// Saves those; how many.
    pub(super) fn save_snapshots(
        &mut self,
        runtime: &Handle,
        store: &FileConversationStore,
        report: &mut ImportReport,
    ) -> Result<usize> {
        let snapshots = std::mem::take(&mut self.snapshots);
        let foreign = snapshots.into_iter().map(|mut snapshot| {
            let saved = std::mem::take(&mut snapshot.messages);
            let origins = saved
                .into_iter()
                .filter_map(|saved| self.foreign(saved.seq, saved.message).ok())
                .map(|foreign| foreign.origin())
                .collect();
            let file = format!("{} snapshot {}", self.scope, snapshot.id);
            ForeignSnapshot::new(snapshot, file, origins)
        });
        let foreign: Vec<_> = foreign.collect();
        runtime.block_on(snapshot::keep(store, foreign, &mut report.refused))
    }
}

/// What is left here of what an export tells.
#[derive(Clone, Copy)]
struct State {
    is_same: bool,
    is_any_left: bool,
    /// Whether all of it was forgotten.
    is_forgotten: bool,
}

/// Takes over of the settings what is not said here: what the conversation is called, and up to when it was cleared.
async fn adopt(
    store: &FileConversationStore,
    head: &Head,
    newest_cleared: Option<Timestamp>,
    State { is_same, is_any_left, is_forgotten }: State,
) -> Result<()> {
    if let Some(cleared) = head.profile.cleared.filter(|_| !is_same) {
        clear(store, newest_cleared.map_or(cleared.at, |at| at.max(cleared.at))).await?;
    }
    let (here, mut there) = (store.profile().await?, Profile::clone(&head.profile));
    if is_forgotten {
        // What it was called and who spoke in it was forgotten with it.
        there.undescribe();
    }
    let (title, tags) = (there.title.clone(), there.tags.clone());
    let metadata = there.metadata.clone();
    let (character, presets) = (there.character.clone(), there.presets.clone());
    let lacks = (here.character.is_none() && character.is_some())
        || presets.keys().any(|id| !here.presets.contains_key(id))
        || (here.title.is_none() && title.is_some())
        || (here.tags.is_empty() && !tags.is_empty())
        || (here.metadata.is_empty() && !metadata.is_empty());
    // A context is one as long as any of its messages is left, unless a repair went on without its settings.
    let are_lost = is_any_left && here.character.is_none() && character.is_some();
    if !lacks || is_same && !are_lost {
        return Ok(());
    }
    let adopted = move |profile: &mut Profile| {
        profile.title = profile.title.take().or(title);
        if profile.tags.is_empty() {
            profile.tags = tags;
        }
        if profile.metadata.is_empty() {
            profile.metadata = metadata;
        }
        profile.character = profile.character.take().or(character);
        for (id, preset) in presets {
            profile.presets.entry(id).or_insert(preset);
        }
    };
    store.change_profile(Box::new(adopted)).await?;
    Ok(())
}
