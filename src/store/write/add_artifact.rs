//! Adds artifacts: seals the contents without the lock and lists them under it, so that others can append in the
//! meantime.

use std::io::Read;
use std::time::Duration;

use crate::directory::Lock;
use crate::error::{Error, Result};
use crate::store::artifact::artifact_files;
use crate::store::artifact::artifact_writer;
use crate::store::artifact::artifact_writer::Sealed;
use crate::store::read::reader::Reader;
use crate::store::record::artifact::{AddedArtifact, Artifact, NewArtifact, Reuse};
use crate::store::write::Writer;

/// Adds an artifact, reading it to its end. Blocks.
pub(crate) fn add(
    reader: &Reader,
    writer: &tokio::sync::Mutex<Writer>,
    new: &NewArtifact,
    content: &mut dyn Read,
) -> Result<AddedArtifact> {
    let timeout = writer.blocking_lock().begin_artifact()?;
    let mut lock = None;
    let added = seal(reader, writer, new, content, (timeout, &mut lock));
    if let Some(lock) = lock {
        lock.release_clean();
    }
    added
}

/// Takes the lock of the artifacts once all is read: the source may be slow, and others add artifacts meanwhile.
fn seal(
    reader: &Reader,
    writer: &tokio::sync::Mutex<Writer>,
    new: &NewArtifact,
    content: &mut dyn Read,
    (timeout, lock): (Duration, &mut Option<Box<dyn Lock>>),
) -> Result<AddedArtifact> {
    let folder = &reader.folder;
    let reuse = new.reuse;
    let mut known = |sha256: &str| {
        *lock = Some(folder.artifacts.lock(timeout)?);
        let profile = reader.settings()?;
        if let Some(id) = &new.id {
            artifact_files::remove_leftover(folder, &profile, id)?;
        }
        if reuse != Reuse::SameBytes {
            return Ok(None);
        }
        let same = artifact_files::same(folder, &profile, &new.kind, sha256);
        Ok(same.ok().flatten().map(|same| same.id.clone()))
    };
    let Sealed { artifact, kid, same } =
        artifact_writer::seal(folder, new, content, reader.now(), &mut known)?;
    if let Some(id) = same {
        let there = artifact_files::read(folder, &*reader.settings()?, &id)?;
        let there = there.ok_or_else(|| Error::Damaged {
            place: artifact_files::place(&id),
            reason: "it has the same bytes, and was deleted just now; add them again",
        })?;
        return Ok(AddedArtifact { artifact: there, was_there: true });
    }
    let same = writer.blocking_lock().file_artifact(&artifact, &kid, reuse)?;
    let was_there = same.is_some();
    Ok(AddedArtifact { artifact: same.unwrap_or(artifact), was_there })
}

/// Restores the contents of a listed artifact, if their digest matches.
pub(crate) fn put_back(
    reader: &Reader,
    writer: &tokio::sync::Mutex<Writer>,
    artifact: &Artifact,
    content: &mut dyn Read,
) -> Result<()> {
    let folder = &reader.folder;
    let timeout = writer.blocking_lock().begin_artifact()?;
    let (mut lock, mut is_other) = (None, false);
    // Publish nothing if the digest differs.
    let mut known = |sha256: &str| {
        lock = Some(folder.artifacts.lock(timeout)?);
        is_other = sha256 != artifact.sha256;
        Ok(is_other.then(String::new))
    };
    let sealed = artifact_writer::seal(
        folder,
        &NewArtifact::copy_of(artifact),
        content,
        reader.now(),
        &mut known,
    );
    if let Some(lock) = lock {
        lock.release_clean();
    }
    sealed?;
    if is_other {
        return Err(Error::InvalidMessage {
            reason: "the contents of an exported artifact have changed",
        });
    }
    folder.artifacts.sync()
}
