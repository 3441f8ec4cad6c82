//! Artifacts of other devices. They keep their ids, since messages refer to them by these.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::store::blocking;
use crate::store::folder::artifact_contents::hex;
use crate::store::folder::artifact_files;
use crate::store::record::artifact::{self, Artifact, NewArtifact};
use crate::store::write::add_artifact;
use crate::transfer::exchange::Exchange;
use crate::transfer::import::put_artifact_back;

impl Exchange {
    /// The artifacts by id; `None` for those that were deleted. One whose description cannot be read is left out.
    ///
    /// # Errors
    /// What prevents reading the conversation.
    pub async fn artifacts(&self) -> Result<BTreeMap<String, Option<Artifact>>> {
        self.store
            .read_with(move |reader| {
                let profile = reader.settings()?;
                let listed = profile.artifacts.iter();
                let deleted = listed.filter(|(_, sha256)| sha256.is_empty());
                let mut artifacts: BTreeMap<_, _> =
                    deleted.map(|(id, _)| (id.clone(), None)).collect();
                let (there, _) = artifact_files::list(&reader.folder, &profile)?;
                artifacts.extend(there.into_iter().map(|there| (there.id.clone(), Some(there))));
                Ok(artifacts)
            })
            .await
    }

    /// Adds another device's artifact under its id, reading the contents to their end. Changes nothing if it is here
    /// already, or was deleted here.
    ///
    /// # Errors
    /// [`Error::InvalidMessage`] if the id is none or belongs to other contents here; [`Error::Io`] if the contents
    /// cannot be read or have another digest than the artifact says. Nothing is added then.
    pub async fn receive_artifact(
        &self,
        artifact: Artifact,
        contents: impl Read + Send + 'static,
    ) -> Result<()> {
        let store = self.store.clone();
        blocking(move || {
            if !artifact::is_id(&artifact.id) {
                let reason = "an artifact's id is 32 hexadecimal digits";
                return Err(Error::InvalidMessage { reason });
            }
            let mut contents = Checked { contents, digest: Sha256::new(), told: &artifact.sha256 };
            match store.reader().settings()?.artifacts.get(&artifact.id) {
                Some(sha256) if sha256.is_empty() => Ok(()),
                Some(sha256) if *sha256 != artifact.sha256 => {
                    let reason = "an artifact's id belongs to other contents here";
                    Err(Error::InvalidMessage { reason })
                }
                Some(_) => put_artifact_back(&store, &artifact, &mut contents).map(drop),
                None => {
                    let new = NewArtifact::copy_of(&artifact);
                    let added =
                        add_artifact::add(store.reader(), store.writer(), &new, &mut contents);
                    added.map(drop)
                }
            }
        })
        .await
    }

    /// Deletes artifacts that were deleted elsewhere. What was never here is marked as deleted, so that it does not come.
    ///
    /// # Errors
    /// Those of appending.
    pub async fn delete_artifacts(&self, ids: &[String]) -> Result<()> {
        let ids = ids.to_vec();
        self.store.write(move |writer| writer.delete_received_artifacts(&ids)).await
    }
}

/// Contents that end with an error if their digest is not the one that was told.
struct Checked<'a, R> {
    contents: R,
    digest: Sha256,
    told: &'a str,
}

impl<R: Read> Read for Checked<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.contents.read(into)?;
        self.digest.update(into.get(..read).unwrap_or_default());
        if read == 0 && !into.is_empty() && hex(&self.digest.clone().finalize()) != self.told {
            let reason = "the contents are not those of the artifact";
            return Err(io::Error::new(ErrorKind::InvalidData, reason));
        }
        Ok(read)
    }
}
