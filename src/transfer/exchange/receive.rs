//! Stores what other devices have.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::Value;

use crate::error::Result;
use crate::store::file_store::known::Known;
use crate::store::record::import_digest::Origin;
use crate::store::record::validation::{Limits, ValidMessage};
use crate::store::{ConversationStore, FileConversationStore};
use crate::transfer::arrivals::{self, Arrival, Expiry};
use crate::transfer::exchange::{Exchange, SharedMessage, SharedSnapshot};

/// What other devices have for a conversation. `Debug` shows no words.
#[derive(Clone, Default, PartialEq)]
pub struct Incoming {
    /// Messages that were forgotten elsewhere.
    pub forgotten: BTreeSet<Origin>,
    /// Messages, in any order.
    pub messages: Vec<SharedMessage>,
    /// Settings by the names of [`Exchange::settings`]; `None` for those that were taken back.
    pub settings: BTreeMap<String, Option<Value>>,
    /// Snapshots by id; `None` for those that were deleted.
    pub snapshots: BTreeMap<String, Option<SharedSnapshot>>,
}

/// What became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Received {
    /// The number of messages that were stored.
    pub taken: usize,
    /// The number of messages that were here.
    pub already_there: usize,
    /// The number of messages that were forgotten here, or that limits removed. They stay away.
    pub forgotten: usize,
    /// The number of messages that were here and are forgotten now.
    pub removed: usize,
    /// The number of messages that no store takes, because their record would be too long.
    pub(crate) refused: usize,
    /// Settings that cannot be applied: a newer program's, or those that are outside their limits.
    pub left_out: BTreeSet<String>,
    /// Snapshots of which messages are neither here nor forgotten. They were not saved: receive them again once these have
    /// arrived.
    pub incomplete: BTreeSet<String>,
}

impl Exchange {
    /// Applies what other devices have, in this order: forgettings, a clear, messages, other settings, snapshots. Receiving
    /// the same again changes nothing, and completes what was interrupted.
    ///
    /// Forgettings are noted whether or not the messages are here, so that they stay away later. Messages are stored as they
    /// were said, without masking, under the next numbers and at the place that they have on the device that said them. One
    /// that is there more than a week ahead of this device's clock keeps its time, and is placed where it arrives. What the
    /// limits here hide of them is deleted later, as always.
    ///
    /// Read [`settings`](Self::settings) again afterwards to know what a later change here starts from: a clear in the future
    /// counts as one of now, and some settings may be left out.
    ///
    /// # Errors
    /// [`Error::WrongKey`](crate::Error::WrongKey) and similar errors if some message here can only be read under another key
    /// or by another program, since it may be the same. Those of appending. What was applied before the error stays.
    pub async fn receive(&self, incoming: Incoming) -> Result<Received> {
        let Incoming { forgotten, messages, mut settings, snapshots } = incoming;
        let mut received = Received::default();
        let mut known = self.store.known().lock().await;
        let known = &mut *known;
        received.removed = forget(&self.store, known, forgotten).await?;
        if let Some(cleared) = settings.remove("cleared") {
            self.receive_clear(cleared, &mut received).await?;
        }
        if !messages.is_empty() {
            known.catch_up(&self.store).await?;
            self.take(messages, known, &mut received).await?;
        }
        self.receive_settings(settings, &mut received).await?;
        self.receive_snapshots(snapshots, known, &mut received).await?;
        Ok(received)
    }

    /// Stores the messages that are neither here nor forgotten, in the order of their times.
    async fn take(
        &self,
        mut messages: Vec<SharedMessage>,
        known: &mut Known,
        received: &mut Received,
    ) -> Result<()> {
        messages.sort_by_key(|shared| shared.at);
        let mut seen = HashSet::with_capacity(messages.len());
        messages.retain(|shared| seen.insert(shared.origin));
        let (store, later) = (&self.store, Expiry::Later);
        let arrived = arrivals::take(store, known, messages, later, |_| {}).await?;
        for (shared, reason) in &arrived.refused {
            tracing::warn!(%reason, origin = %shared.origin, "another device's message was refused");
        }
        received.taken = arrived.taken;
        received.already_there = arrived.already_there;
        received.forgotten = arrived.forgotten;
        received.refused = arrived.refused.len();
        Ok(())
    }
}

/// Forgets what is here of what was forgotten elsewhere, and notes all of it. Returns how many were here.
pub(crate) async fn forget(
    store: &FileConversationStore,
    known: &mut Known,
    forgotten: BTreeSet<Origin>,
) -> Result<usize> {
    if forgotten.is_empty() {
        return Ok(0);
    }
    // What is noted is told to others too, so the messages go first.
    let removed = forget_those_here(store, known, &forgotten).await?;
    let forgotten = Arc::new(forgotten);
    let noted = Arc::clone(&forgotten);
    store.write(move |writer| writer.note_forgotten(&noted)).await?;
    // Another process may have received some of them before they were noted.
    Ok(removed + forget_those_here(store, known, &forgotten).await?)
}

/// Forgets what is here of these, and returns how many were.
pub(crate) async fn forget_those_here(
    store: &FileConversationStore,
    known: &mut Known,
    forgotten: &BTreeSet<Origin>,
) -> Result<usize> {
    known.catch_up(store).await?;
    let numbers = known.numbers(forgotten);
    if numbers.is_empty() {
        return Ok(0);
    }
    let report = store.forget(&numbers).await?;
    for finding in &report.left {
        tracing::warn!(kind = finding.kind.code(), file = finding.file, "not removed");
    }
    Ok(report.removed.len())
}

impl Arrival for SharedMessage {
    fn origin(&self) -> Origin {
        self.origin
    }

    fn copy_of(&self) -> Option<Origin> {
        self.copy_of
    }

    fn checked(&self, original: Option<u64>, _: &Limits) -> Result<ValidMessage> {
        ValidMessage::received(self.marked(original), self.at)
    }
}

debug_shows!(Incoming as it:
    forgotten = it.forgotten.len(), messages = it.messages.len(), settings = it.settings.len(),
    snapshots = it.snapshots.len()
);
