//! Committing a batch that was worked out without the lock.

use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::store::folder::{document, segments};
use crate::store::read::state;
use crate::store::read::tail::Tail;
use crate::store::record::document::{Document, DocumentId, block_seqs};
use crate::store::record::encoding::{LONGEST_RECORD, object};
use crate::store::record::profile::Profile;
use crate::store::record::snapshot::{Snapshot, check_id};
use crate::store::record::store_state::StoreState;
use crate::store::record::validation::{TimestampPolicy, ValidMessage};
use crate::store::rules::batch::Batch;
use crate::store::write::committer::Committer;
use crate::store::write::{Writer, forget, publish_many, snapshots};

impl Writer {
    /// Writes the documents, then adds the messages, then deletes, if the revision is the expected one.
    pub(crate) fn commit(&mut self, batch: &Batch) -> Result<StoreState> {
        let mut valid = Vec::with_capacity(batch.messages().len());
        for stored in batch.messages() {
            let mut message = ValidMessage::new(stored.message.clone(), &self.limits)?;
            message.time = stored.name.time;
            valid.push(message);
        }
        self.locked(|committer, tail, compactor| {
            if state::revision(tail) != batch.expected_revision() {
                return Err(Error::Conflict);
            }
            let seqs = batch.messages().iter().map(|stored| stored.seq);
            if !seqs.eq((1..=valid.len() as u64).map(|at| tail.last_seq.saturating_add(at))) {
                return Err(Error::InvalidMessage { reason: "its numbers do not follow" });
            }
            for (id, bytes) in batch.documents() {
                put(committer, tail, id, bytes)?;
            }
            if !valid.is_empty() {
                publish_many(committer, tail, compactor, valid, TimestampPolicy::Own)?;
            }
            if !batch.deleted().is_empty() {
                forget::erase(committer, tail, batch.deleted())?;
            }
            Ok(state::of_tail(tail))
        })
    }
}

/// Writes one document, or removes it.
fn put(
    committer: &Committer<'_>,
    tail: &mut Tail,
    id: &DocumentId,
    bytes: Option<&[u8]>,
) -> Result<()> {
    match (id, bytes) {
        (DocumentId::Named(Document::Profile), Some(bytes)) => {
            let profile: Profile = parsed(bytes)?;
            committer.change_profile(tail, |kept| {
                let rev = kept.rev;
                *kept = Profile { rev, ..profile };
            })
        }
        (DocumentId::Snapshot(id), Some(bytes)) => {
            let snapshot: Snapshot = parsed(bytes)?;
            if snapshot.id != *id {
                return Err(Error::InvalidMessage { reason: "the snapshot has another id" });
            }
            check_id(id)?;
            snapshots::put(committer, &snapshot)
        }
        (DocumentId::Snapshot(id), None) => {
            check_id(id)?;
            committer.folder.snapshots.remove(id)?;
            committer.folder.snapshots.sync()
        }
        (DocumentId::Segment(_), Some(bytes)) if bytes.len() > LONGEST_RECORD => {
            Err(Error::InvalidMessage { reason: "the segment is too long to be read again" })
        }
        (DocumentId::Segment(block), Some(bytes)) => {
            segments::check_replaceable(committer.folder, *block)?;
            segments::FILES.write(committer.folder, committer.key, &block.to_string(), bytes)
        }
        (DocumentId::Segment(block), None) => {
            segments::remove(committer.folder, &std::iter::once(block_seqs(*block)).collect())
        }
        (DocumentId::Named(named @ Document::Calibration), Some(bytes)) => {
            document::check_replaceable(committer.folder, *named)?;
            committer.replace(*named, bytes)
        }
        (DocumentId::Named(_), _) => {
            Err(Error::InvalidMessage { reason: "the store keeps this document by itself" })
        }
    }
}

fn parsed<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let reason = "the document is not what its name says";
    let copy = Zeroizing::new(bytes.to_vec());
    object(&copy).ok_or(Error::InvalidMessage { reason })
}
