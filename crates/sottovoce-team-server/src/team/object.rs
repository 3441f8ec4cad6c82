//! Objects: artifacts and packs in the object store
//!
//! A row of `doomed` exists for every object that no other row refers to: from before it is written until it is referred to, and
//! from when it is not referred to any more until it is deleted. So a crash leaves no object behind.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::api::Id;
use crate::database::Step;
use crate::error::{Error, Result};
use crate::team::organisation::random;
use crate::team::text::id;
use crate::team::{Team, must, step, values};

/// How long writing an object may take, in milliseconds.
const WRITING: i64 = 60 * 60 * 1000;

/// The most objects that one sweep deletes.
const SWEEP: i64 = 1_000;

const DOOM: &str = "INSERT INTO doomed (object, due) VALUES ($1, $2)";
/// One that a sweep has claimed is lost.
const KEEP: &str = "DELETE FROM doomed WHERE object = $1 AND due > 0 RETURNING object";
/// Those that could not be deleted before come last.
const DUE: &str = "SELECT object FROM doomed WHERE due <= $1 ORDER BY due = 0, due LIMIT $2";
const CLAIM: &str = "UPDATE doomed SET due = 0 WHERE object = $1 AND due <= $2 RETURNING object";
const GONE: &str = "DELETE FROM doomed WHERE object = $1 AND due = 0";

/// An object and the digest of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) id: Id,
    pub(super) digest: Vec<u8>,
}

impl Team {
    /// Writes an object, which is deleted in an hour unless a transaction keeps it.
    pub(super) async fn write_object(&self, bytes: Bytes) -> Result<Object> {
        let object = random()?;
        self.run(vec![doom(object, self.now().saturating_add(WRITING))]).await?;
        let digest = Sha256::digest(&bytes).to_vec();
        self.objects.put(&name(object), bytes).await?;
        Ok(Object { id: object, digest })
    }

    /// Reads an object. `None` if it is gone or has other bytes.
    pub(super) async fn read_object(&self, object: &Object) -> Result<Option<Bytes>> {
        let bytes = self.objects.get(&name(object.id)).await?;
        Ok(bytes.filter(|bytes| Sha256::digest(bytes).as_slice() == object.digest))
    }

    /// Deletes objects that nothing refers to. Returns how many.
    pub(super) async fn sweep(&self) -> Result<u64> {
        let now = self.now();
        let (mut swept, mut failed) = (0, Ok(()));
        for row in self.rows(DUE, values![now, SWEEP]).await? {
            let object: Id = id(&row, 0)?;
            if self.rows(CLAIM, values![object, now]).await?.is_empty() {
                continue;
            }
            match self.objects.delete(&name(object)).await {
                Ok(()) => {}
                // The store cannot be reached: the others fail too.
                Err(error) if error.is_transient() => return Err(error.into()),
                Err(error) => {
                    failed = Err(error.into());
                    continue;
                }
            }
            self.rows(GONE, values![object]).await?;
            swept += 1;
        }
        failed.map(|()| swept)
    }

    /// Deletes what has just become due. What fails is left to the upkeep.
    pub(super) async fn sweep_some(&self) {
        if let Err(error) = self.sweep().await {
            tracing::warn!(%error, "objects that nothing refers to could not be deleted yet");
        }
    }
}

/// Keeps an object that was written.
pub(super) fn keep(object: Id) -> (Step, Option<Error>) {
    must(KEEP, values![object], Error::Busy)
}

/// Has an object deleted once it is due.
pub(super) fn doom(object: Id, due: i64) -> (Step, Option<Error>) {
    step(DOOM, values![object, due])
}

/// The name of an object. Folders keep listings short.
fn name(object: Id) -> String {
    let name = object.to_string();
    format!("teams/{}/{name}", name.get(..2).unwrap_or_default())
}
