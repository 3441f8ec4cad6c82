//! Telling what of an export a conversation has already, has forgotten, or does not know.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::runtime::Handle;

use super::SYSTEM;
use super::parse::Head;
use crate::error::Result;
use crate::import::conversations::clear;
use crate::import::snapshot::{self, ForeignSnapshot};
use crate::import::{Foreign, ForeignMessage, ImportReport, Refusal, RefusalReason};
use crate::message::ChatMessage;
use crate::store::backup::{Body, Record};
use crate::store::origin::Origin;
use crate::store::reader::Wanted;
use crate::store::{ConversationStore, FileConversationStore, Snapshot, StoredMessage};

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
    /// What the conversation has under these numbers.
    near: HashMap<u64, Arc<StoredMessage>>,
    read_to: u64,
    /// Messages that are missing here, until it is known whether they were forgotten.
    missing: Vec<(u64, ChatMessage)>,
    new: Foreign,
    snapshots: Vec<Snapshot>,
}

impl Merge {
    pub(super) fn new(is_exact: bool, head: &Head, last: u64) -> Self {
        Self {
            kinship: if is_exact { Kinship::Exact } else { Kinship::Unknown },
            scope: head.scope.clone(),
            partial: head.partial,
            last,
            diverged: false,
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
            let goes_on = self.is_same() && !self.diverged && !self.partial;
            return match record.body {
                _ if goes_on => Ok(Some(record)),
                Body::Message(message) => self.add(seq, message, report).map(|()| None),
                Body::Forget(_) => Ok(None),
            };
        }
        let Body::Message(message) = record.body else { return Ok(None) };
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
            None if self.kinship == Kinship::None => self.add(seq, message, report)?,
            None => self.missing.push((seq, message)),
        }
        Ok(None)
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
        let missing = std::mem::take(&mut self.missing);
        if self.kinship == Kinship::None {
            for (seq, message) in missing {
                self.add(seq, message, report)?;
            }
        } else {
            // Whatever is not there any more was forgotten, or had expired.
            report.forgotten += missing.len();
        }
        if self.is_exact() {
            return Ok(());
        }
        runtime.block_on(adopt(store, head, self.is_same()))?;
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

/// Takes over of the settings what is not said here: what the conversation is called, and up to when it was cleared.
async fn adopt(store: &FileConversationStore, head: &Head, is_same: bool) -> Result<()> {
    if let Some(cleared) = head.profile.cleared.filter(|_| !is_same) {
        clear(store, cleared.at).await?;
    }
    let (here, there) = (store.profile().await?, &head.profile);
    let (title, tags) = (there.title.clone(), there.tags.clone());
    let metadata = there.metadata.clone();
    let lacks = (here.title.is_none() && title.is_some())
        || (here.tags.is_empty() && !tags.is_empty())
        || (here.metadata.is_empty() && !metadata.is_empty());
    if !lacks || is_same {
        return Ok(());
    }
    let adopted = move |profile: &mut crate::store::Profile| {
        profile.title = profile.title.take().or(title);
        if profile.tags.is_empty() {
            profile.tags = tags;
        }
        if profile.metadata.is_empty() {
            profile.metadata = metadata;
        }
    };
    store.change_profile(Box::new(adopted)).await?;
    Ok(())
}
