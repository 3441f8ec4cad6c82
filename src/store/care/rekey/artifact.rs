//! Reseals an artifact's contents. This may take long, so it holds the conversation's lock only while the new file
//! replaces the old one.

use std::cell::Cell;
use std::time::Duration;

use crate::crypto::{HEADER, SealingKey, StreamOpener, StreamSealer};
use crate::directory::Source;
use crate::error::{Error, Result};
use crate::store::care::rekey::reseal::{ResealOutcome, misread};
use crate::store::folder::artifact_contents::{self, Text, digest};
use crate::store::folder::{Folder, unreadable};

/// Reseals contents under the writing key. The new file is durable and was read back before it replaces the old one.
pub(crate) fn reseal(folder: &Folder, id: &str, timeout: Duration) -> Result<ResealOutcome> {
    let key = folder.writing_key()?;
    let source = match folder.artifacts.open(id) {
        Ok(Some(source)) => source,
        Ok(None) => return Ok(ResealOutcome::Gone),
        Err(error) => return unreadable(error).map(ResealOutcome::Left),
    };
    let opener = match artifact_contents::opener(folder, id, &*source)? {
        Ok((_, kid)) if kid == key.id() => return Ok(ResealOutcome::Already),
        Ok((opener, _)) => opener,
        Err(kind) => return Ok(ResealOutcome::Left(kind)),
    };
    let path = folder.artifacts.path().join(id);
    let mut text = Text::new(source, opener);
    let (before, wrong, mut held) = (Cell::new(None), Cell::new(None), None);
    let exchanged = folder.artifacts.replace_verified(
        id,
        &mut |sink| {
            let scope = folder.scope.parts();
            let mut sealer = StreamSealer::new(key, &artifact_contents::associated(&scope, id))?;
            match digest(&mut text, |piece| sealer.write(piece, sink))? {
                Ok(digest) => before.set(Some(digest)),
                Err(kind) => wrong.set(Some(kind)),
            }
            sealer.finish(sink)
        },
        &mut |written| {
            let Some(before) = before.get() else { return Ok(false) };
            if written_digest(folder, key, id, written)? != Some(before) {
                return Err(misread(path.clone()));
            }
            held = Some(folder.directory.lock(timeout)?);
            // The artifact may have been deleted in the meantime.
            Ok(folder.artifacts.link_count(id)? > 0)
        },
    );
    let synced = exchanged.and_then(|done| folder.artifacts.sync().map(|()| done));
    if let Some(lock) = held {
        lock.release_as_found();
    }
    Ok(match (synced?, wrong.take()) {
        (_, Some(kind)) => ResealOutcome::Left(kind),
        (true, None) => ResealOutcome::Anew,
        (false, None) => ResealOutcome::Gone,
    })
}

/// The digest of the file that was written, read back under the key; `None` if it does not open.
fn written_digest(
    folder: &Folder,
    key: &SealingKey,
    id: &str,
    written: Box<dyn Source>,
) -> Result<Option<[u8; 32]>> {
    let mut header = [0; HEADER];
    let failed = |error| Error::io("read back the file", folder.artifacts.path().join(id), error);
    written.read_at(0, &mut header).map_err(failed)?;
    let scope = folder.scope.parts();
    let opener =
        StreamOpener::new(key, &artifact_contents::associated(&scope, id), &header, written.size());
    let Some(opener) = opener else { return Ok(None) };
    Ok(digest(&mut Text::new(written, opener), |_| Ok(()))?.ok())
}
