//! Stores imported messages.

use std::collections::{HashSet, VecDeque};

use jiff::Timestamp;

use crate::error::{Error, Result};
use crate::store::record::validation::IncomingMessage;
use crate::store::{FileConversationStore, Progress};
use crate::transfer::import::known::{Known, NEARLY_ALL};
use crate::transfer::import::{
    ImportReport, ImportedMessage, ImportedMessages, Refusal, RefusalReason,
};

/// The most messages that are stored at a time: those of one pack.
const BATCH: usize = 32_768;
/// The most bytes of text that are stored at a time.
const BATCH_BYTES: usize = 32 << 20;

impl ImportedMessages {
    /// Returns what [`import_into`](Self::import_into) would do, and changes nothing.
    ///
    /// # Errors
    /// Those of reading the store. [`Error::WrongKey`] if the keys at hand do not open some of its messages, since
    /// these might be the same.
    pub async fn preview(self, store: &FileConversationStore) -> Result<ImportReport> {
        Ok(self.look(store).await?.0)
    }

    /// A preview, and the origins that the store would have afterwards.
    pub(super) async fn look(self, store: &FileConversationStore) -> Result<(ImportReport, Known)> {
        let system = self.system;
        let (mut report, mut rest) = self.begin(store.latest_time());
        let mut known = Known::default();
        known.catch_up(store).await?;
        sift(&mut rest, &known, &mut report);
        let arrivals = marked(rest.iter(), system);
        refuse(&mut rest, store.refused(arrivals).await?, &mut report);
        report.taken = rest.len();
        known.pretend(rest.into_iter().map(|imported| imported.origin));
        Ok((report.sorted(), known))
    }

    /// Stores the messages that the store has not had yet, each at its place in time, calling `progress` for each
    /// batch. Import again to continue an import that was interrupted, or whose future was dropped.
    ///
    /// # Errors
    /// Those of appending; messages stored before the error stay. [`Error::WrongKey`] if the keys at hand do not open
    /// some of the store's messages, since these might be the same.
    pub async fn import_into(
        self,
        store: &FileConversationStore,
        progress: impl Fn(Progress) + Send,
    ) -> Result<ImportReport> {
        let system = self.system;
        let (mut report, mut rest) = self.begin(store.latest_time());
        let total = rest.len();
        let mut known = Known::default();
        known.catch_up(store).await?;
        known.save(store, NEARLY_ALL).await;
        sift(&mut rest, &known, &mut report);
        loop {
            progress(Progress { done: total - rest.len(), total });
            let batch = next_batch(&rest, system);
            if batch.is_empty() {
                return Ok(report.sorted());
            }
            match store.import_after(known.seen, known.noted, batch.clone()).await {
                Ok(Some(stored)) => {
                    report.taken += stored.len();
                    let last = stored.last().map_or(known.seen, |stored| stored.seq);
                    let taken = rest.drain(..stored.len().min(rest.len()));
                    let names = stored.iter().map(|stored| stored.name);
                    known.note(taken.map(|imported| imported.origin).zip(names), last);
                }
                // Another process has written, perhaps the same messages.
                Ok(None) => {
                    known.catch_up(store).await?;
                    sift(&mut rest, &known, &mut report);
                }
                Err(error) if RefusalReason::for_store_error(&error).is_some() => {
                    let refused = store.refused(batch).await?;
                    if refused.is_empty() {
                        return Err(error);
                    }
                    refuse(&mut rest, refused, &mut report);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn begin(self, latest: Timestamp) -> (ImportReport, VecDeque<ImportedMessage>) {
        let Self { mut messages, refused, passed_over, is_ordered, .. } = self;
        if is_ordered {
            stand_in_line(&mut messages, latest);
        }
        let mut report = ImportReport { refused, passed_over, ..ImportReport::default() };
        for imported in &messages {
            *report.forms.entry(imported.form).or_default() += 1;
        }
        let mut seen = HashSet::with_capacity(messages.len());
        messages.retain(|imported| seen.insert(imported.origin));
        report.already_there = report.forms.values().sum::<usize>() - messages.len();
        (report, messages.into())
    }
}

impl ImportReport {
    /// Adds what another import into the same conversation has done.
    pub(super) fn add(&mut self, more: Self) {
        self.taken += more.taken;
        self.already_there += more.already_there;
        self.forgotten += more.forgotten;
        self.removed += more.removed;
        self.refused.extend(more.refused);
    }

    pub(super) fn sorted(mut self) -> Self {
        self.refused.sort_by(|a, b| a.file.cmp(&b.file));
        self
    }
}

/// Keeps the system's own order: no message is placed before those that precede it there, even if its time is earlier.
/// Skips times ahead of the clock, which will be refused.
fn stand_in_line(messages: &mut [ImportedMessage], latest: Timestamp) {
    let mut newest = Timestamp::MIN;
    for imported in messages {
        let said = imported.message.timestamp;
        if said > latest {
            continue;
        }
        newest = newest.max(said);
        imported.place = (newest > said).then_some(newest);
    }
}

/// Drops the messages that the store has or had.
fn sift(rest: &mut VecDeque<ImportedMessage>, known: &Known, report: &mut ImportReport) {
    rest.retain(|imported| {
        let is_there = known.has(imported.origin);
        let is_forgotten = !is_there && known.has_forgotten(imported.origin);
        report.already_there += usize::from(is_there);
        report.forgotten += usize::from(is_forgotten);
        !is_there && !is_forgotten
    });
}

/// Drops the messages that the store refused, by their index.
fn refuse(
    rest: &mut VecDeque<ImportedMessage>,
    refused: Vec<(usize, Error)>,
    report: &mut ImportReport,
) {
    let mut refused = refused.into_iter().peekable();
    let mut at = 0;
    rest.retain(|imported| {
        let reason = refused.next_if(|(place, _)| *place == at);
        at += 1;
        let Some(reason) = reason.and_then(|(_, error)| RefusalReason::for_store_error(&error))
        else {
            return true;
        };
        report.refused.push(Refusal::new(&imported.file, reason));
        false
    });
}

/// The next messages to be stored together.
fn next_batch(rest: &VecDeque<ImportedMessage>, system: &str) -> Vec<IncomingMessage> {
    let mut bytes = 0;
    let fits = |imported: &&ImportedMessage| {
        let fits = bytes < BATCH_BYTES;
        bytes += imported.message.content.len();
        fits
    };
    marked(rest.iter().take(BATCH).take_while(fits), system)
}

/// The messages with the metadata that says where they come from.
fn marked<'a>(
    messages: impl Iterator<Item = &'a ImportedMessage>,
    system: &str,
) -> Vec<IncomingMessage> {
    let mark = |imported: &ImportedMessage| {
        let mut message = imported.message.clone();
        imported.origin.mark(&mut message, system);
        IncomingMessage { message, place: imported.place }
    };
    messages.map(mark).collect()
}
