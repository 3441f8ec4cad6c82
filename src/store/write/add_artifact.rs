//! Adds artifacts: seals the contents without the lock and lists them under it, so that others can append in the
//! meantime.

use std::io::{ErrorKind, Read};
use std::time::Duration;

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::crypto::StreamSealer;
use crate::directory::{Lock, Sink, Streamed};
use crate::error::{Error, Result};
use crate::store::folder::artifact_files::{self, FILES, read, same};
use crate::store::folder::artifact_measure::{self, ArtifactMeasure};
use crate::store::folder::{Folder, artifact_contents};
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
        let same = same(folder, &profile, &new.kind, sha256);
        Ok(same.ok().flatten().map(|same| same.id.clone()))
    };
    let Sealed { artifact, kid, same } =
        seal_contents(folder, new, content, reader.now(), &mut known)?;
    if let Some(id) = same {
        let there = read(folder, &*reader.settings()?, &id)?;
        let reason = "it has the same bytes, and was deleted just now; add them again";
        let there = there.ok_or_else(|| Error::damaged(FILES.place(&id), reason))?;
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
    let sealed =
        seal_contents(folder, &NewArtifact::copy_of(artifact), content, reader.now(), &mut known);
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

/// The outcome of sealing contents.
struct Sealed {
    artifact: Artifact,
    /// The key's id.
    kid: String,
    /// The id of the artifact that already has the same bytes. Nothing was published then.
    same: Option<String>,
}

/// Seals contents into a file with an id of their own. The file is durable once the folder is synced, and is no
/// artifact before the settings list it. Publishes nothing if `known` finds an artifact with the same digest.
fn seal_contents(
    folder: &Folder,
    new: &NewArtifact,
    content: &mut dyn Read,
    now: Timestamp,
    known: &mut dyn FnMut(&str) -> Result<Option<String>>,
) -> Result<Sealed> {
    let id = artifact_measure::id_of(new)?;
    let key = folder.writing_key()?;
    let scope = folder.scope.parts();
    let mut sealed = None;
    let streamed = folder.artifacts.stream(&mut |sink| {
        let sealer = StreamSealer::new(key, &artifact_contents::associated(&scope, &id))?;
        let measure = seal_all(sealer, content, sink)?;
        let artifact = measure.artifact(new, id.clone(), now);
        let same = known(&artifact.sha256)?;
        let name = same.is_none().then(|| id.clone());
        sealed = Some(Sealed { artifact, kid: key.id().to_owned(), same });
        Ok(name)
    })?;
    match (streamed, sealed) {
        (Streamed::Taken(id), _) => {
            let reason = "an unlisted file has its name; a repair removes it";
            Err(Error::damaged(folder.artifacts.path().join(id), reason))
        }
        (_, Some(sealed)) => Ok(sealed),
        (_, None) => Err(Error::ShuttingDown),
    }
}

fn seal_all(
    mut sealer: StreamSealer,
    content: &mut dyn Read,
    sink: &mut Sink<'_>,
) -> Result<ArtifactMeasure> {
    let mut measure = ArtifactMeasure::default();
    let mut piece = Zeroizing::new(vec![0; PIECE]);
    loop {
        let read = match content.read(&mut piece) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::io("read what is to be kept", "the artifact", error)),
        };
        let bytes = piece.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        measure.take(bytes);
        sealer.write(bytes, sink)?;
    }
    sealer.finish(sink)?;
    Ok(measure)
}

/// Bytes per read.
const PIECE: usize = 1 << 16;
