//! Stores imported messages.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::error::Result;
use crate::store::file_store::known::Known;
use crate::store::record::import_digest::Origin;
use crate::store::record::validation::{Limits, ValidMessage};
use crate::store::{FileConversationStore, Progress};
use crate::transfer::arrivals::{self, Arrival, Arrived, Expiry, name_original};
use crate::transfer::import::{ImportReport, ImportedMessage, ImportedMessages, Refusal};

impl ImportedMessages {
    /// Returns what [`import_into`](Self::import_into) would do, and changes nothing.
    ///
    /// # Errors
    /// Those of reading the store. [`Error::WrongKey`](crate::Error::WrongKey) if the keys at hand do not open some of
    /// its messages, since these might be the same.
    pub async fn preview(self, store: &FileConversationStore) -> Result<ImportReport> {
        Ok(self.look(store).await?.0)
    }

    /// A preview, and the origins that the store would have afterwards.
    pub(super) async fn look(self, store: &FileConversationStore) -> Result<(ImportReport, Known)> {
        let (report, messages) = self.begin(store.latest_time());
        let mut known = Known::default();
        known.catch_up(store).await?;
        let origins: Vec<_> = messages.iter().map(ImportedMessage::origin).collect();
        let arrived = arrivals::preview(store, &known, messages).await?;
        let refused: HashSet<_> = arrived.refused.iter().map(|(one, _)| one.origin).collect();
        let is_new = |origin: &Origin| {
            !known.has(*origin) && !known.has_forgotten(*origin) && !refused.contains(origin)
        };
        let new: Vec<_> = origins.into_iter().filter(is_new).collect();
        known.pretend(new);
        Ok((report.with(arrived).sorted(), known))
    }

    /// Stores the messages that the store has not had yet, each at its place in time, calling `progress` for each
    /// batch. Import again to continue an import that was interrupted, or whose future was dropped.
    ///
    /// # Errors
    /// Those of appending; messages stored before the error stay. [`Error::WrongKey`](crate::Error::WrongKey) if the
    /// keys at hand do not open some of the store's messages, since these might be the same.
    pub async fn import_into(
        self,
        store: &FileConversationStore,
        progress: impl Fn(Progress) + Send,
    ) -> Result<ImportReport> {
        let mut known = Known::default();
        known.catch_up(store).await?;
        self.take_into(store, &mut known, progress).await
    }

    /// Imports into a store of which `known` says what it has.
    pub(super) async fn take_into(
        self,
        store: &FileConversationStore,
        known: &mut Known,
        progress: impl Fn(Progress) + Send,
    ) -> Result<ImportReport> {
        let (report, messages) = self.begin(store.latest_time());
        let arrived = arrivals::take(store, known, messages, Expiry::First, progress).await?;
        Ok(report.with(arrived).sorted())
    }

    /// Each message once, with the metadata that says where it comes from.
    fn begin(self, latest: Timestamp) -> (ImportReport, Vec<ImportedMessage>) {
        let Self { system, mut messages, refused, passed_over, is_ordered } = self;
        if is_ordered {
            stand_in_line(&mut messages, latest);
        }
        let mut report = ImportReport { refused, passed_over, ..ImportReport::default() };
        for imported in &mut messages {
            *report.forms.entry(imported.form).or_default() += 1;
            imported.origin.mark(&mut imported.message, system);
        }
        let mut seen = HashSet::with_capacity(messages.len());
        messages.retain(|imported| seen.insert(imported.origin));
        report.already_there = report.forms.values().sum::<usize>() - messages.len();
        (report, messages)
    }
}

impl Arrival for ImportedMessage {
    fn origin(&self) -> Origin {
        self.origin
    }

    fn copy_of(&self) -> Option<Origin> {
        self.copy_of
    }

    fn checked(&self, original: Option<u64>, limits: &Limits) -> Result<ValidMessage> {
        let mut message = self.message.clone();
        if let Some((snapshot, _)) = self.message.restored_from() {
            name_original(&mut message, snapshot, original);
        }
        match self.place {
            Some(place) if self.was_stored => ValidMessage::received(message, place),
            place => ValidMessage::imported(message, place, limits),
        }
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

    fn with(mut self, arrived: Arrived<ImportedMessage>) -> Self {
        self.taken += arrived.taken;
        self.already_there += arrived.already_there;
        self.forgotten += arrived.forgotten;
        let refused = arrived.refused.into_iter();
        self.refused.extend(refused.map(|(one, reason)| Refusal::new(&one.file, reason)));
        self
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
