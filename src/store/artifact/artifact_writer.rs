//! Seals an artifact's contents while reading them, without holding all of them in memory.

use std::io::{ErrorKind, Read};

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::crypto::StreamSealer;
use crate::directory::{Sink, Streamed};
use crate::error::{Error, Result};
use crate::store::artifact::contents;
use crate::store::artifact::measure::{self, ArtifactMeasure};
use crate::store::folder::Folder;
use crate::store::record::artifact::{Artifact, NewArtifact};

/// Bytes per read.
const PIECE: usize = 1 << 16;

/// The outcome of sealing contents.
pub(crate) struct Sealed {
    pub(crate) artifact: Artifact,
    /// The key's id.
    pub(crate) kid: String,
    /// The id of the artifact that already has the same bytes. Nothing was published then.
    pub(crate) same: Option<String>,
}

/// Seals contents into a file with an id of their own. The file is durable once the folder is synced, and is no
/// artifact before the settings list it. Publishes nothing if `known` finds an artifact with the same digest.
pub(crate) fn seal(
    folder: &Folder,
    new: &NewArtifact,
    content: &mut dyn Read,
    now: Timestamp,
    known: &mut dyn FnMut(&str) -> Result<Option<String>>,
) -> Result<Sealed> {
    let id = measure::id_of(new)?;
    let key = folder.writing_key()?;
    let scope = folder.scope.parts();
    let mut sealed = None;
    let streamed = folder.artifacts.stream(&mut |sink| {
        let sealer = StreamSealer::new(key, &contents::associated(&scope, &id))?;
        let measure = seal_all(sealer, content, sink)?;
        let artifact = measure.artifact(new, id.clone(), now);
        let same = known(&artifact.sha256)?;
        let name = same.is_none().then(|| id.clone());
        sealed = Some(Sealed { artifact, kid: key.id().to_owned(), same });
        Ok(name)
    })?;
    match (streamed, sealed) {
        (Streamed::Taken(id), _) => Err(Error::Damaged {
            place: folder.artifacts.path().join(id).display().to_string(),
            reason: "an unlisted file has its name; a repair removes it",
        }),
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
