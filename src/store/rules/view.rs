//! What every store can do, written once on top of a [`StoreBackend`]. Each change reads the state, works out a batch and
//! commits it; after a conflict it begins again.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::store::record::document::{Document, DocumentId, block_of};
use crate::store::record::encoding::object;
use crate::store::record::profile::Profile;
use crate::store::record::retention::Retention;
use crate::store::record::seq_set::SeqSet;
use crate::store::record::store_state::StoreState;
use crate::store::rules::StoreBackend;
use crate::store::rules::batch::Batch;

/// How often a change is tried.
pub(crate) const ATTEMPTS: u32 = 100;

/// Runs an attempt until it meets no conflict.
macro_rules! retried {
    ($attempt:expr) => {{
        let mut conflicts = 0;
        loop {
            match $attempt.await {
                Err($crate::error::Error::Conflict)
                    if conflicts + 1 < $crate::store::rules::view::ATTEMPTS =>
                {
                    conflicts += 1;
                }
                outcome => break outcome,
            }
            $crate::store::rules::view::pause(conflicts).await;
        }
    }};
}
pub(crate) use retried;

/// Waits after so many conflicts, longer each time and 64 ms at most, so that other writers get done.
pub(crate) async fn pause(conflicts: u32) {
    let time = Duration::from_millis((1 << conflicts.min(7)) / 2);
    // A thread waits, because a host's runtime may have no timer. Another kind of runtime has no such threads either.
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(move || std::thread::sleep(time)).await),
        Err(_) => tokio::task::yield_now().await,
    }
}

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
        SeqSet::up_to(self.profile.expired).without(&self.state.forgotten)
    }
}

/// The value in a document's JSON.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(id: &DocumentId, bytes: &[u8]) -> Result<T> {
    let reason = "it is not what its name says";
    object(bytes).ok_or_else(|| Error::Damaged { place: id.to_string(), reason })
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
pub(crate) async fn delete_artifacts(
    store: &(impl StoreBackend + ?Sized),
    ids: Vec<String>,
) -> Result<()> {
    match store.artifact_store().filter(|_| !ids.is_empty()) {
        Some(artifacts) => artifacts.delete_artifacts(&ids).await,
        None => Ok(()),
    }
}
