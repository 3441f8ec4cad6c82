//! Reseals a file under the writing key.

use crate::crypto::{AssociatedData, Envelope, Scratch};
use crate::directory::Directory;
use crate::error::{Error, Result};
use crate::store::folder::{document, unreadable};
use crate::store::record::document::Document;
use crate::store::record::finding::FindingKind;
use crate::store::write::committer::Committer;

/// The outcome of resealing an item.
#[derive(Debug)]
pub(crate) enum ResealOutcome {
    /// It was under the writing key already.
    Already,
    Anew,
    /// It opens under none of the keys and stays unchanged.
    Left(FindingKind),
    /// The file was listed but has vanished since.
    Gone,
}

/// The outcome for an envelope.
pub(crate) enum Resealed {
    Already,
    Anew(Vec<u8>),
    Left(FindingKind),
}

impl Committer<'_> {
    /// Seals the plaintext for the same associated data under the writing key.
    pub(crate) fn reseal(&self, associated: &AssociatedData<'_>, bytes: &[u8]) -> Result<Resealed> {
        if Envelope::parse(bytes).is_ok_and(|envelope| envelope.key_id == self.key.id()) {
            return Ok(Resealed::Already);
        }
        Ok(match self.folder.unseal(associated, bytes)? {
            Ok(plaintext) => Resealed::Anew(self.key.seal(associated, &plaintext)?),
            Err(kind) => Resealed::Left(kind),
        })
    }

    /// Whether `new` opens under the writing key to the plaintext of `old`.
    pub(crate) fn says_the_same(
        &self,
        associated: &AssociatedData<'_>,
        new: &[u8],
        old: &[u8],
    ) -> Result<bool> {
        let mut scratch = Scratch::default();
        let opened = Envelope::parse(new)
            .ok()
            .filter(|envelope| envelope.key_id == self.key.id())
            .and_then(|envelope| self.key.open(associated, &envelope, &mut scratch));
        let Some(opened) = opened else {
            return Ok(false);
        };
        Ok(self.folder.unseal(associated, old)?.is_ok_and(|plaintext| plaintext == *opened))
    }

    /// Reseals a document under the writing key, as an envelope or as a stream.
    pub(crate) fn reseal_document(&self, document: Document) -> Result<ResealOutcome> {
        let folder = &self.folder;
        let sealed = match document.may_be_long().then(|| document::long(folder, document)) {
            Some(Ok(Some(sealed))) => sealed,
            Some(Err(error)) => return unreadable(error).map(ResealOutcome::Left),
            Some(Ok(None)) | None => {
                let scope = folder.scope.parts();
                return self.reseal_file(&*folder.directory, &document.associated(&scope));
            }
        };
        let text = match document::open_long(folder, document, &sealed)? {
            Ok(long) if long.kid == self.key.id() => return Ok(ResealOutcome::Already),
            Ok(long) => long.text,
            Err(kind) => return Ok(ResealOutcome::Left(kind)),
        };
        match self.stage_long(document, &text)? {
            true => Ok(ResealOutcome::Anew),
            false => Err(misread(folder.directory.path().join(document.file_name()))),
        }
    }

    /// Reseals a file under the writing key. The new file is durable and was read back before it replaces the old
    /// one. Its name is durable once the folder is synced.
    pub(crate) fn reseal_file(
        &self,
        directory: &dyn Directory,
        associated: &AssociatedData<'_>,
    ) -> Result<ResealOutcome> {
        let old = match directory.read(associated.name) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(ResealOutcome::Gone),
            Err(error) => return unreadable(error).map(ResealOutcome::Left),
        };
        let new = match self.reseal(associated, &old)? {
            Resealed::Already => return Ok(ResealOutcome::Already),
            Resealed::Left(kind) => return Ok(ResealOutcome::Left(kind)),
            Resealed::Anew(new) => new,
        };
        let good = directory.replace_verified(
            associated.name,
            &mut |sink| sink(&new),
            &mut |written| {
                let written = document::whole(&*written)
                    .map_err(|error| Error::io("read back the file", directory.path(), error))?;
                self.says_the_same(associated, &written, &old)
            },
        )?;
        if good {
            Ok(ResealOutcome::Anew)
        } else {
            Err(misread(directory.path().join(associated.name)))
        }
    }
}

/// The error for a file that does not read back as written.
pub(crate) fn misread(path: std::path::PathBuf) -> Error {
    let reason =
        "after resealing it did not read back as written, so the old file stays; check the disk";
    Error::damaged(path, reason)
}
