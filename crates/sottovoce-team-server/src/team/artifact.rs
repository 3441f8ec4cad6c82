//! Artifacts: sealed pieces in the object store

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::api::{Action, Artifact, Id, MAX_ARTIFACT};
use crate::error::{Error, Result};
use crate::team::caller::{Permit, permitted};
use crate::team::object::{Object, keep};
use crate::team::pack::object;
use crate::team::text::id;
use crate::team::{Team, must, step, values};

const FIND: &str = concat!(
    "SELECT object, digest, size FROM artifact WHERE conversation = $2 AND id = $6 AND ",
    permitted!()
);
const LIST: &str = concat!(
    "SELECT id, size FROM artifact WHERE conversation = $2 AND ",
    permitted!(),
    " ORDER BY id"
);
const ADD: &str =
    "INSERT INTO artifact (conversation, id, object, digest, size) VALUES ($1, $2, $3, $4, $5)";
const COUNT: &str = "UPDATE conversation SET bytes = bytes + $2 WHERE id = $1 RETURNING bytes";
const DOOM: &str = "INSERT INTO doomed (object, due) SELECT object, $3 FROM artifact WHERE conversation = $1 AND id = $2 RETURNING object";
const UNCOUNT: &str = "\
UPDATE conversation SET bytes = bytes - (SELECT size FROM artifact WHERE conversation = $1 AND id = $2) WHERE id = $1";
const DELETE: &str = "DELETE FROM artifact WHERE conversation = $1 AND id = $2";

impl Team {
    /// Stores a piece. One with this identifier and these bytes is stored already; one with other bytes is not replaced.
    pub(crate) async fn put_artifact(
        &self,
        permit: &Permit,
        artifact: Id,
        bytes: Bytes,
    ) -> Result<()> {
        let place = permit.place()?;
        if bytes.is_empty() || bytes.len() > MAX_ARTIFACT {
            return Err(Error::TooLarge { what: "a piece of an artifact", most: MAX_ARTIFACT });
        }
        let digest = Sha256::digest(&bytes).to_vec();
        if let Some((found, _)) = self.find(permit, artifact).await? {
            return same(&found, &digest);
        }
        let size = bytes.len() as i64;
        let object = self.write_object(bytes).await?;
        let steps = vec![
            keep(object.id),
            must(COUNT, values![place.id, size], Error::NotFound { what: "conversation" }),
            step(ADD, values![place.id, artifact, object.id, object.digest, size]),
        ];
        match self.write(permit, steps).await {
            // Somebody else stored it in the meantime. The object of this request is swept.
            Err(Error::Conflict { what }) => match self.find(permit, artifact).await? {
                Some((found, _)) => same(&found, &digest),
                None => Err(Error::Conflict { what }),
            },
            other => other,
        }
    }

    /// The bytes of a piece, once `take` has memory for so many.
    pub(crate) async fn artifact<T>(
        &self,
        permit: &Permit,
        artifact: Id,
        take: impl FnOnce(usize) -> Result<T>,
    ) -> Result<(Bytes, T)> {
        let unknown = || Error::NotFound { what: "artifact" };
        let (object, size) = self.find(permit, artifact).await?.ok_or_else(unknown)?;
        let taken = take(size)?;
        match self.read_object(&object).await? {
            Some(bytes) => Ok((bytes, taken)),
            // It may have been deleted in the meantime.
            None if self.find(permit, artifact).await?.is_none() => Err(unknown()),
            None => Err(Error::Damaged { what: "a piece of an artifact" }),
        }
    }

    pub(crate) async fn artifacts(&self, permit: &Permit) -> Result<Vec<Artifact>> {
        let rows = self.read(permit, LIST, Vec::new()).await?;
        rows.iter()
            .map(|row| Ok(Artifact { id: id(row, 0)?, bytes: row.int(1).unsigned_abs() }))
            .collect()
    }

    pub(crate) async fn delete_artifact(&self, permit: &Permit, artifact: Id) -> Result<()> {
        let (place, due) = (permit.place()?, self.now());
        let unknown = Error::NotFound { what: "artifact" };
        let steps = vec![
            must(DOOM, values![place.id, artifact, due], unknown),
            step(UNCOUNT, values![place.id, artifact]),
            step(DELETE, values![place.id, artifact]),
        ];
        self.change(permit, Action::DeleteArtifact, artifact, None, steps).await?;
        self.sweep_some().await;
        Ok(())
    }

    /// The object of a piece, and its size.
    async fn find(&self, permit: &Permit, artifact: Id) -> Result<Option<(Object, usize)>> {
        let rows = self.read(permit, FIND, values![artifact]).await?;
        let found = rows.first().map(|row| (object(row, 0), row.int(2)));
        found.map(|(found, size)| Ok((found?, usize::try_from(size).unwrap_or(0)))).transpose()
    }
}

fn same(found: &Object, digest: &[u8]) -> Result<()> {
    match found.digest == digest {
        true => Ok(()),
        false => Err(Error::Conflict { what: "there is another artifact with this identifier" }),
    }
}
