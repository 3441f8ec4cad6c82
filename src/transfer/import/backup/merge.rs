//! Decides for each record of an export whether the conversation has it, has forgotten it, or lacks it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::error::Result;
use crate::message::ChatMessage;
use crate::scope::Scope;
use crate::store::read::query::RangeQuery;
use crate::store::read::record_dump::{Body, Record};
use crate::store::read::tail::Tail;
use crate::store::record::import_digest::{ImportTombstones, Origin, SOTTOVOCE};
use crate::store::record::name::RecordName;
use crate::store::record::seq_set::SeqSet;
use crate::store::rules::current_state::{UnreadablePolicy, ready, survey};
use crate::store::write::locked_state::LockedState;
use crate::store::{Cleared, ConversationStore, FileConversationStore, Snapshot, StoredMessage};
use crate::transfer::import::backup::copies;
use crate::transfer::import::backup::parse::Head;
use crate::transfer::import::backup::settings::{self, Line};
use crate::transfer::import::cleared::ClearedMessages;
use crate::transfer::import::known::{self, Known};
use crate::transfer::import::snapshot::{self, ImportedSnapshot};
use crate::transfer::import::{
    ImportReport, ImportedMessage, ImportedMessages, LeftOut, Refusal, RefusalReason,
};

/// The sequence numbers that are read at a time.
const STRETCH: u64 = 4096;

/// How an export and a conversation are related.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kinship {
    /// The conversation was empty: the export is restored exactly.
    Exact,
    /// No common record was found yet.
    Unknown,
    /// They share records: sequence numbers mean the same in both.
    Same,
    /// They share no record.
    None,
}

/// The state of a merge.
pub(super) struct Merge {
    kinship: Kinship,
    scope: Scope,
    partial: bool,
    /// The highest sequence number that the conversation had.
    last: u64,
    /// Whether some sequence number means another record in the export.
    diverged: bool,
    /// The sequence numbers of messages here that the export does not have.
    not_held: SeqSet,
    held: Vec<u64>,
    /// What was forgotten here, and the records of that.
    erased: SeqSet,
    forgets: Vec<RecordName>,
    /// Messages of the conversation by sequence number: the stretch that was read last.
    near: HashMap<u64, Arc<StoredMessage>>,
    read_to: u64,
    /// Messages that the conversation does not have. Whether they were forgotten is decided at the end.
    missing: Vec<(RecordName, ChatMessage)>,
    /// The clear marker of the export, and the new messages that it hides.
    cleared: Option<Cleared>,
    out_of_context: ClearedMessages,
    new: ImportedMessages,
    /// Whether some messages of the export may be copies of others, and the origin of each message then.
    has_copies: bool,
    roots: HashMap<u64, Origin>,
    snapshots: Vec<Snapshot>,
}

impl Merge {
    pub(super) fn new(scope: Scope, head: &Head, here: &Tail) -> Self {
        // A restore that was interrupted before its first message has already written the settings.
        let is_empty =
            here.last_seq == 0 && (here.profile.rev == 0 || *here.profile == head.profile);
        let is_exact = is_empty && !head.partial;
        Self {
            kinship: if is_exact { Kinship::Exact } else { Kinship::Unknown },
            scope,
            has_copies: !head.profile.restored.is_empty(),
            roots: HashMap::new(),
            partial: head.partial,
            last: here.last_seq,
            diverged: false,
            not_held: std::iter::once(1..=here.last_seq)
                .collect::<SeqSet>()
                .without(&here.without_message()),
            held: Vec::new(),
            erased: here.erased.clone(),
            forgets: here.forgets.clone(),
            cleared: head.profile.cleared,
            out_of_context: ClearedMessages::default(),
            near: HashMap::new(),
            read_to: 0,
            missing: Vec::new(),
            new: ImportedMessages::new(SOTTOVOCE),
            snapshots: Vec::new(),
        }
    }

    pub(super) fn is_exact(&self) -> bool {
        self.kinship == Kinship::Exact
    }

    pub(super) fn is_same(&self) -> bool {
        self.kinship == Kinship::Same
    }

    /// Whether the export is a later state of this conversation and has everything that is here. Its settings then hide
    /// only messages that it has itself.
    pub(super) fn is_later(&mut self) -> bool {
        if !self.held.is_empty() {
            let held = std::mem::take(&mut self.held).into_iter().map(|seq| seq..=seq).collect();
            self.not_held = self.not_held.without(&held);
        }
        self.line() == Line::Same && self.not_held.is_empty()
    }

    /// Whether both are states of one conversation, as far as the records read so far say.
    fn line(&self) -> Line {
        match self.kinship {
            Kinship::Same if !self.diverged && !self.partial => Line::Same,
            _ => Line::Another,
        }
    }

    /// Handles one record. Returns it if it must be restored under its own sequence number.
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
        if self.has_copies
            && let Body::Message(message) = &record.body
        {
            self.roots.extend(Origin::of_stored(&self.scope, seq, message).map(|at| (seq, at)));
        }
        if seq > self.last {
            if let Body::Forget(erased) = &record.body
                && self.is_later()
                && self.is_any_here(store, erased)?
            {
                // An export never deletes messages that are here.
                self.diverged = true;
            }
            return match record.body {
                _ if self.is_later() => Ok(Some(record)),
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
                self.held.push(seq);
                report.already_there += 1;
            }
            Some(_) => {
                self.diverged = true;
                if self.kinship == Kinship::Unknown {
                    self.kinship = Kinship::None;
                }
                self.add(seq, message, report)?;
            }
            // A missing message was forgotten if its number is in the list of forgotten ones. Otherwise it was lost, or
            // was itself the record of something forgotten.
            None if !self.erased.contains(seq) => {
                self.held.push(seq);
                self.diverged |= self.forgets.iter().any(|forget| forget.seq == seq);
                self.add(seq, message, report)?;
            }
            None => self.missing.push((record.name, message)),
        }
        Ok(None)
    }

    /// Whether the conversation has any of these messages.
    fn is_any_here(&self, store: &FileConversationStore, erased: &SeqSet) -> Result<bool> {
        let had: SeqSet = std::iter::once(1..=self.last).collect();
        let asked = had.without(&self.erased);
        let asked = asked.without(&asked.without(erased));
        let tail = store.reader().newest()?;
        let mut any = false;
        let state = LockedState { reader: store.reader(), tail: &tail };
        ready(survey(&state, &asked, UnreadablePolicy::Refused, &mut |_| any = true))?;
        Ok(any)
    }

    /// The message of a sequence number. Numbers must be asked for in ascending order.
    fn there(
        &mut self,
        store: &FileConversationStore,
        seq: u64,
    ) -> Result<Option<Arc<StoredMessage>>> {
        if seq > self.read_to {
            let end = seq.saturating_add(STRETCH - 1);
            let (reading, _) = store.reader().read_kept(&RangeQuery::Seqs(seq..=end))?;
            // An unreadable record may be the same message.
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
        let hides = |cleared: Cleared| {
            seq <= cleared.seq || message.is_imported() && message.timestamp <= cleared.at
        };
        let is_cleared = self.cleared.is_some_and(hides);
        match self.imported(seq, message) {
            Ok(imported) => {
                if is_cleared {
                    self.out_of_context.add(&imported);
                }
                self.new.messages.push(imported);
            }
            Err(reason) => {
                report.refused.push(Refusal::new(format!("{}#{seq}", self.scope), reason))
            }
        }
        Ok(())
    }

    fn imported(&self, seq: u64, message: ChatMessage) -> Result<ImportedMessage, RefusalReason> {
        let name = format!("{}#{seq}", self.scope);
        // An imported message keeps its origin.
        match Origin::of(&message) {
            Some(origin) => Ok(ImportedMessage::known(name, message, origin)),
            None => ImportedMessage::new(SOTTOVOCE, &name, "backup", message),
        }
    }

    /// Stores the new messages after the last record. Returns the settings that are left out.
    pub(super) fn end_records(
        &mut self,
        runtime: &Handle,
        store: &FileConversationStore,
        head: &Head,
        report: &mut ImportReport,
    ) -> Result<Vec<LeftOut>> {
        if self.is_exact() {
            return Ok(Vec::new());
        }
        let here = runtime.block_on(known::forgotten(store))?;
        self.sort_out_missing(&here, report)?;
        let gone = ImportTombstones::parse(head.imports.as_deref().unwrap_or_default());
        let gone = gone.map(|list| list.origins).unwrap_or_default();
        report.removed += runtime.block_on(forget(store, &gone - &here.origins))?;
        let is_any_left = report.already_there > 0 || !self.new.messages.is_empty();
        let adoption = settings::Adoption {
            line: if self.last == 0 { Line::Empty } else { self.line() },
            is_later: self.is_later(),
            have_met: self.have_met(runtime, store, head, report)?,
            // A person who forgot all messages meant the title and notes too.
            is_forgotten: report.forgotten > 0 && !is_any_left,
        };
        let left_out = runtime.block_on(settings::adopt(store, head, adoption))?;
        let mut new = std::mem::replace(&mut self.new, ImportedMessages::new(SOTTOVOCE));
        new.messages.sort_by_key(|imported| imported.message.timestamp);
        let cleared = std::mem::take(&mut self.out_of_context);
        let roots = std::mem::take(&mut self.roots);
        runtime.block_on(async {
            let cleared = cleared.begin(store, &new.messages).await?;
            let copies = copies::split_off(&mut new);
            report.add(new.import_into(store, |_| {}).await?);
            report.add(copies::import(copies, &roots, store).await?);
            cleared.end(store).await
        })?;
        Ok(left_out)
    }

    /// Whether messages of the export are or were here, perhaps under other numbers. Only asks if it matters.
    fn have_met(
        &self,
        runtime: &Handle,
        store: &FileConversationStore,
        head: &Head,
        report: &ImportReport,
    ) -> Result<bool> {
        if report.already_there > 0 || store.reader().settings()?.is_described_as(&head.profile) {
            return Ok(true);
        }
        let mut known = Known::default();
        runtime.block_on(known.catch_up(store))?;
        let was_here = |origin| known.has(origin) || known.has_forgotten(origin);
        Ok(self.new.messages.iter().any(|imported| was_here(imported.origin())))
    }

    /// Decides about the messages whose numbers were forgotten here. In another state of this conversation they are those
    /// messages, in another conversation they may be any.
    fn sort_out_missing(
        &mut self,
        forgotten: &ImportTombstones,
        report: &mut ImportReport,
    ) -> Result<()> {
        let missing = std::mem::take(&mut self.missing);
        let was_said_here = |(name, message): &(RecordName, ChatMessage)| {
            Origin::of(message).is_none()
                && Origin::at_home(&self.scope, name.seq, message)
                    .is_ok_and(|origin| forgotten.has(origin))
        };
        if self.is_same() || missing.iter().any(was_said_here) {
            report.forgotten += missing.len();
            return Ok(());
        }
        missing.into_iter().try_for_each(|(name, message)| self.add(name.seq, message, report))
    }

    /// Holds a snapshot back until its messages have their new sequence numbers.
    pub(super) fn keep_snapshot(&mut self, snapshot: Snapshot) {
        self.snapshots.push(snapshot);
    }

    /// Saves the snapshots that were held back, and returns how many.
    pub(super) fn save_snapshots(
        &mut self,
        runtime: &Handle,
        store: &FileConversationStore,
        report: &mut ImportReport,
    ) -> Result<usize> {
        let snapshots = std::mem::take(&mut self.snapshots);
        let imported = snapshots.into_iter().map(|mut snapshot| {
            let saved = std::mem::take(&mut snapshot.messages);
            let origins = saved
                .into_iter()
                .filter_map(|saved| self.imported(saved.seq, saved.message).ok())
                .map(|imported| imported.origin())
                .collect();
            let file = format!("{} snapshot {}", self.scope, snapshot.id);
            ImportedSnapshot::new(snapshot, file, origins)
        });
        let imported: Vec<_> = imported.collect();
        runtime.block_on(snapshot::keep(store, imported, &mut report.refused))
    }
}

/// Forgets the messages with these origins, and returns how many there were.
async fn forget(store: &FileConversationStore, gone: BTreeSet<Origin>) -> Result<usize> {
    if gone.is_empty() {
        return Ok(0);
    }
    let mut known = Known::default();
    known.catch_up(store).await?;
    let seqs = known.numbers(&gone);
    if seqs.is_empty() {
        return Ok(0);
    }
    Ok(store.forget(&seqs).await?.removed.len())
}
