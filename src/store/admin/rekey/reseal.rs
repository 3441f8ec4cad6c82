//! Sealing a file anew under the key that writes.

use crate::blob::{Blobs, Source};
use crate::crypto::{Envelope, Place, Scratch};
use crate::error::{Error, Result};
use crate::store::commit::committer::Committer;
use crate::store::folder::unreadable;
use crate::store::record::finding::FindingKind;

/// What became of something sealed.
#[derive(Debug)]
pub(crate) enum ResealOutcome {
    /// It was under the writing key already.
    Already,
    Anew,
    /// It opens under no key at hand, and stays as it is.
    Left(FindingKind),
    /// It was there when the folder was listed.
    Gone,
}

/// What an envelope becomes.
pub(crate) enum Line {
    Already,
    Anew(Vec<u8>),
    Left(FindingKind),
}

impl Committer<'_> {
    /// The same words for the same place, under the key that writes.
    pub(crate) fn reseal(&self, place: &Place<'_>, bytes: &[u8]) -> Result<Line> {
        if Envelope::parse(bytes).is_ok_and(|envelope| envelope.key_id == self.key.id()) {
            return Ok(Line::Already);
        }
        Ok(match self.folder.unseal(place, bytes)? {
            Ok(plaintext) => Line::Anew(self.key.seal(place, &plaintext)?),
            Err(kind) => Line::Left(kind),
        })
    }

    /// Whether the one envelope says under the key that writes what the other says under any.
    pub(crate) fn says_the_same(&self, place: &Place<'_>, new: &[u8], old: &[u8]) -> Result<bool> {
        let mut scratch = Scratch::default();
        let opened = Envelope::parse(new)
            .ok()
            .filter(|envelope| envelope.key_id == self.key.id())
            .and_then(|envelope| self.key.open(place, &envelope, &mut scratch));
        let Some(opened) = opened else {
            return Ok(false);
        };
        Ok(self.folder.unseal(place, old)?.is_ok_and(|plaintext| plaintext == *opened))
    }

    /// Puts a file under the writing key in place of the same under another. The new one is durable, was read back and
    /// opened before the old one goes; its name is durable once the folder is synced.
    pub(crate) fn reseal_file(
        &self,
        blobs: &dyn Blobs,
        place: &Place<'_>,
    ) -> Result<ResealOutcome> {
        let old = match blobs.read(place.name) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(ResealOutcome::Gone),
            Err(error) => return unreadable(error).map(ResealOutcome::Left),
        };
        let new = match self.reseal(place, &old)? {
            Line::Already => return Ok(ResealOutcome::Already),
            Line::Left(kind) => return Ok(ResealOutcome::Left(kind)),
            Line::Anew(new) => new,
        };
        let good = blobs.exchange(place.name, &mut |sink| sink(&new), &mut |written| {
            let written = whole(&*written)
                .map_err(|error| Error::io("read back the file", blobs.path(), error))?;
            self.says_the_same(place, &written, &old)
        })?;
        if good { Ok(ResealOutcome::Anew) } else { Err(misread(blobs.path().join(place.name))) }
    }
}

/// What was written does not read back.
pub(crate) fn misread(path: std::path::PathBuf) -> Error {
    Error::Damaged {
        place: path.display().to_string(),
        reason: "sealed anew, it did not read back as it was written, so the old file stays; check the disk",
    }
}

fn whole(source: &dyn Source) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(source.size()).unwrap_or(usize::MAX)];
    let read = source.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}
