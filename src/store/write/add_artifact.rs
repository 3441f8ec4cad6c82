//! Adds artifacts: seals the contents without the lock and lists them under it, so that others can append in the
//! meantime.

use std::io::Read;

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
    let folder = &reader.folder;
    let timeout = writer.blocking_lock().begin_artifact()?;
    // While this lock is held, nobody removes the unfinished file.
    let lock = folder.artifacts.lock(timeout)?;
    let added = seal(reader, writer, new, content);
    lock.release_clean();
    added
}

fn seal(
    reader: &Reader,
    writer: &tokio::sync::Mutex<Writer>,
    new: &NewArtifact,
    content: &mut dyn Read,
) -> Result<AddedArtifact> {
    let folder = &reader.folder;
    if let Some(id) = &new.id {
        artifact_files::remove_leftover(folder, &*reader.settings()?, id)?;
    }
    let reuse = new.reuse;
    let known = |sha256: &str| {
        let profile = reader.settings().ok().filter(|_| reuse == Reuse::SameBytes)?;
        let same = artifact_files::same(folder, &profile, &new.kind, sha256).ok()??;
        Some(same.id.clone())
    };
    let Sealed { artifact, kid, same } =
        artifact_writer::seal(folder, new, content, reader.now(), &known)?;
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
    let lock = folder.artifacts.lock(timeout)?;
    let other = std::cell::Cell::new(false);
    // Publish nothing if the digest differs.
    let known = |sha256: &str| {
        other.set(sha256 != artifact.sha256);
        other.get().then(String::new)
    };
    let sealed = artifact_writer::seal(
        folder,
        &NewArtifact::copy_of(artifact),
        content,
        reader.now(),
        &known,
    );
    lock.release_clean();
    sealed?;
    if other.get() {
        return Err(Error::InvalidMessage {
            reason: "the contents of an exported artifact have changed",
        });
    }
    folder.artifacts.sync()
}
