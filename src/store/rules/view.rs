//! What every store can do, written once on top of a [`StoreBackend`]. Each change reads the state, works out a batch and
//! commits it; after a conflict it begins again.

use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::store::record::document::{Document, DocumentId, block_of};
use crate::store::record::encoding::{StoredMessage, object};
use crate::store::record::profile::Profile;
use crate::store::record::retention::Retention;
use crate::store::record::seq_set::SeqSet;
use crate::store::record::store_state::StoreState;
use crate::store::rules::batch::Batch;
use crate::store::rules::forget_plan::MessageRefs;
use crate::store::rules::{ReadQuery, StoreBackend};

/// How often a change is tried.
pub(crate) const ATTEMPTS: usize = 200;
/// How many messages are read at a time where all are looked at.
const STRETCH: u64 = 4096;

/// Runs an attempt until it meets no conflict.
macro_rules! retried {
    ($attempt:expr) => {{
        let mut left = $crate::store::rules::view::ATTEMPTS;
        loop {
            match $attempt.await {
                Err($crate::error::Error::Conflict) if left > 1 => left -= 1,
                outcome => break outcome,
            }
            tokio::task::yield_now().await;
        }
    }};
}
pub(crate) use retried;

/// A conversation's state and its settings at that moment, or later ones: a commit then meets a conflict.
pub(crate) struct View {
    pub(crate) state: StoreState,
    pub(crate) profile: Profile,
    pub(crate) retention: Retention,
}

impl View {
    /// # Errors
    /// [`Error::Damaged`] if the settings cannot be read.
    pub(crate) async fn of(store: &(impl StoreBackend + ?Sized)) -> Result<Self> {
        let state = store.state().await?;
        let profile = match store.document(&Document::Profile.into()).await? {
            Some(bytes) => parse(&Document::Profile.into(), &bytes)?,
            None => Profile::default(),
        };
        let retention = profile.retention.unwrap_or(store.policy().retention);
        Ok(Self { state, profile, retention })
    }

    /// A batch for this state that also changes the settings, if they are not as they were.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Profile)) -> Result<Batch> {
        self.change_after(Batch::new(&self.state), change)
    }

    /// Changes the settings after the documents of a batch.
    pub(crate) fn change_after(
        &mut self,
        batch: Batch,
        change: impl FnOnce(&mut Profile),
    ) -> Result<Batch> {
        let mut profile = self.profile.clone();
        change(&mut profile);
        if profile == self.profile {
            return Ok(batch);
        }
        profile.take_revision(&self.profile, self.profile.rev);
        profile.seq = self.state.last_seq;
        let bytes = profile.to_plaintext()?;
        self.profile = profile;
        Ok(batch.write(Document::Profile, bytes))
    }

    /// How many messages there are that have not expired.
    pub(crate) fn stored(&self) -> u64 {
        let mut others = self.state.forgotten.clone();
        others.extend(std::iter::once(1..=self.profile.expired));
        self.state.last_seq.saturating_sub(others.count())
    }

    /// The numbers that have expired and are not deleted yet.
    pub(crate) fn expired(&self) -> SeqSet {
        let expired: SeqSet = std::iter::once(1..=self.profile.expired).collect();
        expired.without(&self.state.forgotten)
    }

    /// The numbers from 1 to the highest.
    pub(crate) fn all(&self) -> SeqSet {
        std::iter::once(1..=self.state.last_seq).collect()
    }
}

/// The value in a document's JSON.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(id: &DocumentId, bytes: &[u8]) -> Result<T> {
    let reason = "it is not what its name says";
    object(bytes).ok_or_else(|| Error::Damaged { place: id.to_string(), reason })
}

/// Hands over the messages with these numbers, some thousand at a time.
///
/// # Errors
/// If `is_strict`: when a message cannot be read now, but could be with another key or a newer program, or later.
pub(crate) async fn survey(
    store: &(impl StoreBackend + ?Sized),
    seqs: &SeqSet,
    is_strict: bool,
    visit: &mut (dyn FnMut(&StoredMessage) + Send),
) -> Result<()> {
    for range in pieces(seqs) {
        let result = store.read(ReadQuery::Seqs(range)).await?;
        if is_strict {
            result.check_readable(seqs)?;
        }
        result.messages.iter().filter(|m| seqs.contains(m.seq)).for_each(|m| visit(m));
    }
    Ok(())
}

/// Ranges that cover the numbers, none longer than a stretch. Those close together are read in one go.
pub(crate) fn pieces(seqs: &SeqSet) -> Vec<RangeInclusive<u64>> {
    let mut pieces: Vec<RangeInclusive<u64>> = Vec::new();
    for range in seqs.ranges() {
        let mut first = *range.start();
        if let Some(last) = pieces.last_mut()
            && *range.end() - *last.start() < STRETCH
        {
            *last = *last.start()..=*range.end();
            continue;
        }
        while *range.end() - first >= STRETCH {
            pieces.push(first..=first + STRETCH - 1);
            first += STRETCH;
        }
        pieces.push(first..=*range.end());
    }
    pieces
}

/// Deletes these numbers in a batch, with the segments of the search index that have their words.
pub(crate) fn delete(batch: Batch, state: &StoreState, seqs: &SeqSet) -> Batch {
    let last = block_of(state.last_seq);
    let mut batch = batch;
    for range in seqs.ranges() {
        for block in block_of(*range.start())..=block_of(*range.end()).min(last) {
            batch = batch.remove(DocumentId::Segment(block));
        }
    }
    batch.delete(seqs.ranges())
}

/// Deletes the artifacts that hold the words of messages that a commit has deleted. Call it after the commit: a commit
/// that meets a conflict may be given up, and its messages then need their artifacts.
pub(crate) async fn delete_artifacts_of(
    store: &(impl StoreBackend + ?Sized),
    refs: &MessageRefs,
) -> Result<()> {
    let ids: Vec<String> = refs.moved().cloned().collect();
    match store.artifact_store().filter(|_| !ids.is_empty()) {
        Some(artifacts) => artifacts.delete_artifacts(&ids).await,
        None => Ok(()),
    }
}
