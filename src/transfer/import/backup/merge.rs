//! Merges an export into a conversation that has contents of its own. A message's origin tells whether the conversation
//! has it, has forgotten it, or lacks it.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::error::Result;
use crate::message::ChatMessage;
use crate::store::file_store::known::Known;
use crate::store::file_store::wait;
use crate::store::read::query::RangeQuery;
use crate::store::read::tail::Tail;
use crate::store::record::import_digest::{ImportTombstones, Origin, SOTTOVOCE};
use crate::store::record::name::RecordName;
use crate::store::record::seq_set::SeqSet;
use crate::store::{FileConversationStore, SavedMessage, Snapshot};
use crate::transfer::exchange::receive;
use crate::transfer::import::backup::settings::{self, Head};
use crate::transfer::import::cleared::{self, ClearedMessages};
use crate::transfer::import::snapshot::{self, ImportedSnapshot};
use crate::transfer::import::{
    ImportReport, ImportedMessage, ImportedMessages, LeftOut, Refusal, RefusalReason,
};
use crate::transfer::settings::change;

/// How many messages with the number that they have here are compared whole.
const COMPARED: usize = 64;

/// The state of a merge.
pub(super) struct Merge {
    store: FileConversationStore,
    /// What the conversation had.
    known: Known,
    was_empty: bool,
    erased: SeqSet,
    /// How many messages the conversation has.
    here: u64,
    /// The numbers here of the export's messages.
    present: Vec<u64>,
    /// Whether all of these have the same number there.
    keeps_numbers: bool,
    /// Whether numbers mean the same in both: some message is the same record in both.
    is_same: bool,
    /// Whether messages were added, which have other numbers than there.
    has_added: bool,
    compared: usize,
    /// Messages that are not here but may have been: something with their number was removed here.
    removed: Vec<(RecordName, ChatMessage, Origin)>,
    /// The highest number of a message that was said before the two went apart, and was forgotten here.
    common_removed: u64,
    /// The numbers of messages that may have been said before the two went apart.
    maybe_common: Vec<u64>,
    /// The new messages, each with its place in time and its number there.
    new: Vec<(Timestamp, u64, ImportedMessage)>,
    /// What the export leaves out of prompts: new messages, and numbers of messages that are here.
    out_of_context: ClearedMessages,
    hidden: Vec<u64>,
    /// The origin of each message of the export, if some may be copies of others.
    origins: Option<HashMap<u64, Origin>>,
    pub(super) snapshots: Vec<Snapshot>,
}

impl Merge {
    pub(super) fn new(store: &FileConversationStore, head: &Head, here: &Tail) -> Result<Self> {
        let mut known = Known::default();
        wait(known.catch_up(store))?;
        let stats = wait(store.stats())?;
        Ok(Self {
            store: store.clone(),
            known,
            was_empty: here.last_seq == 0,
            erased: here.erased.clone(),
            here: stats.message_count + stats.hidden,
            present: Vec::new(),
            keeps_numbers: true,
            is_same: false,
            has_added: false,
            compared: 0,
            removed: Vec::new(),
            common_removed: 0,
            maybe_common: Vec::new(),
            new: Vec::new(),
            out_of_context: ClearedMessages::default(),
            hidden: Vec::new(),
            origins: (!head.profile.restored.is_empty()).then(HashMap::new),
            snapshots: Vec::new(),
        })
    }

    /// Whether every message that is in both has one number in both, so that a snapshot fits as it is.
    pub(super) fn fits(&self) -> bool {
        self.is_same && self.keeps_numbers && !self.has_added
    }

    /// Whether the export has everything that is here.
    fn has_all(&self) -> bool {
        let present: SeqSet = self.present.iter().map(|seq| *seq..=*seq).collect();
        present.count() >= self.here
    }

    /// Whether the messages so far are exactly those that are here, under the same numbers: what a restore leaves that was
    /// interrupted.
    pub(super) fn is_a_beginning(&self) -> bool {
        let has_no_more = self.new.is_empty() && self.removed.is_empty();
        has_no_more && self.keeps_numbers && self.has_all()
    }

    /// Takes one message.
    pub(super) fn take(
        &mut self,
        name: RecordName,
        message: ChatMessage,
        head: &Head,
        report: &mut ImportReport,
    ) -> Result<()> {
        let seq = name.seq;
        let Some(origin) = Origin::of_stored(self.store.scope(), seq, &message) else {
            let reason = RefusalReason::Unstorable("it cannot be written as JSON");
            report.refused.push(Refusal::new(self.file(seq), reason));
            return Ok(());
        };
        if let Some(origins) = &mut self.origins {
            origins.insert(seq, origin);
        }
        let Some(number) = self.known.number(origin) else {
            if self.known.has_forgotten(origin) {
                report.forgotten += 1;
                if self.erased.contains(seq) && !message.is_imported() {
                    self.common_removed = self.common_removed.max(seq);
                }
            } else if self.erased.contains(seq) {
                self.removed.push((name, message, origin));
            } else {
                self.add(name, message, origin, head);
            }
            return Ok(());
        };
        report.already_there += 1;
        self.present.push(number);
        self.keeps_numbers &= number == seq;
        if clears(head, seq, &message) || head.profile.is_pruned(seq) {
            self.hidden.push(number);
        }
        if number == seq && !message.is_imported() {
            self.maybe_common.push(seq);
        }
        if number == seq && !self.is_same && self.compared < COMPARED {
            self.compared += 1;
            let (here, _) = self.store.reader().read_kept(&RangeQuery::Seqs(seq..=seq))?;
            self.is_same = here.messages.iter().any(|stored| stored.message == message);
        }
        Ok(())
    }

    fn add(&mut self, name: RecordName, message: ChatMessage, origin: Origin, head: &Head) {
        let is_cleared = clears(head, name.seq, &message);
        let place = name.time.timestamp().unwrap_or(message.timestamp);
        let imported = ImportedMessage::known(self.file(name.seq), message, origin, place);
        if is_cleared {
            self.out_of_context.add(&imported);
        } else if head.profile.is_pruned(name.seq) {
            self.out_of_context.prune(&imported);
        }
        self.new.push((place, name.seq, imported));
    }

    /// How a report names a message.
    fn file(&self, seq: u64) -> String {
        format!("{}#{seq}", self.store.scope())
    }

    /// The highest number that both have given to one message. What was removed here up to that number is the message that
    /// has the number there. Afterwards the two may have gone apart.
    fn common(&self) -> Result<u64> {
        let later = self.maybe_common.iter().rev().filter(|seq| **seq > self.common_removed);
        for seq in later {
            let (here, _) = self.store.reader().read_kept(&RangeQuery::Seqs(*seq..=*seq))?;
            // An imported one has this number by chance.
            if here.messages.iter().any(|stored| !stored.message.is_imported()) {
                return Ok(*seq);
            }
        }
        Ok(self.common_removed)
    }

    /// Stores the new messages after the last record. Returns the settings that are left out.
    pub(super) fn end_records(
        &mut self,
        head: &Head,
        report: &mut ImportReport,
    ) -> Result<Vec<LeftOut>> {
        let removed = std::mem::take(&mut self.removed);
        let common = if removed.is_empty() { 0 } else { self.common()? };
        for (name, message, origin) in removed {
            match name.seq > common {
                true => self.add(name, message, origin, head),
                false => report.forgotten += 1,
            }
        }
        self.new.sort_by_key(|(place, seq, _)| (*place, *seq));
        let mut new = ImportedMessages::new(SOTTOVOCE);
        new.messages = self.new.drain(..).map(|(_, _, imported)| imported).collect();
        let is_any_left = report.already_there > 0 || !new.messages.is_empty();
        let here = self.store.reader().settings()?;
        // Revisions of conversations that have gone apart count different changes.
        let is_same = self.is_same && !head.partial;
        let is_one_line = is_same && self.keeps_numbers;
        let is_later = is_one_line && here.rev < head.profile.rev && self.has_all();
        let adoption = settings::Adoption {
            was_empty: self.was_empty,
            is_same,
            is_later,
            have_met: report.already_there + report.forgotten > 0
                || here.is_described_as(&head.profile),
            // A person who forgot all messages meant the title and notes too.
            is_forgotten: report.forgotten > 0 && !is_any_left,
        };
        drop(here);
        self.name_originals(&mut new);
        let gone = ImportTombstones::parse(head.imports.as_deref().unwrap_or_default());
        let gone = gone.map(ImportTombstones::unwanted).unwrap_or_default();
        let hidden = std::mem::take(&mut self.hidden);
        let cleared = std::mem::take(&mut self.out_of_context);
        let (store, known, has_added) = (&self.store, &mut self.known, &mut self.has_added);
        wait(async {
            report.removed += receive::forget(store, known, gone).await?;
            let left_out = settings::adopt(store, head, adoption).await?;
            if is_later && !hidden.is_empty() {
                hide(store, hidden).await?;
            }
            let rest = cleared.begin(store, &new.messages).await?;
            known.catch_up(store).await?;
            let added = new.take_into(store, known, |_| {}).await;
            // What was stored before an error is out of prompts too.
            let ended = cleared::hide(store, rest).await;
            let added = added?;
            *has_added = added.taken > 0;
            report.add(added);
            ended?;
            Ok(left_out)
        })
    }

    /// Tells copies their originals, which have other numbers here.
    fn name_originals(&mut self, new: &mut ImportedMessages) {
        let origins = self.origins.take().unwrap_or_default();
        for imported in &mut new.messages {
            let original = imported.message.restored_from().map(|(_, number)| number);
            imported.copy_of = original.and_then(|number| origins.get(&number).copied());
        }
    }

    /// Saves the snapshots that were held back, and returns how many.
    pub(super) fn save_snapshots(&mut self, report: &mut ImportReport) -> Result<usize> {
        let snapshots = std::mem::take(&mut self.snapshots);
        let imported = snapshots.into_iter().map(|mut snapshot| {
            let saved = std::mem::take(&mut snapshot.messages);
            let origin = |saved: SavedMessage| {
                Origin::of_stored(self.store.scope(), saved.seq, &saved.message)
            };
            let origins = saved.into_iter().filter_map(origin).collect();
            let file = format!("{} snapshot {}", self.store.scope(), snapshot.id);
            ImportedSnapshot::new(snapshot, file, origins)
        });
        let imported: Vec<_> = imported.collect();
        wait(snapshot::keep(&self.store, imported, &mut report.refused))
    }
}

/// Leaves messages out of prompts, by number.
async fn hide(store: &FileConversationStore, seqs: Vec<u64>) -> Result<()> {
    change(store, move |profile| {
        let shown: Vec<u64> =
            seqs.iter().copied().filter(|seq| profile.may_be_context(*seq)).collect();
        profile.prune(shown);
    })
    .await
}

/// Whether the export leaves out of prompts what was said up to a clear, and that message with it.
fn clears(head: &Head, seq: u64, message: &ChatMessage) -> bool {
    head.profile.cleared.is_some_and(|cleared| {
        seq <= cleared.seq || message.is_imported() && message.timestamp <= cleared.at
    })
}
