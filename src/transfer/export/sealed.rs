//! An export sealed under the store's own key. It begins with that key's line of the `vault` file, which has the salt
//! of a passphrase; the sealed text follows.

use std::io::{self, Write};
use std::path::Path;

use crate::crypto::{AssociatedData, Kind, StreamSealer};
use crate::directory::fs::new_file::NewFile;
use crate::error::{Error, Result};
use crate::store::folder::Folder;
use crate::store::folder::keyring::key_list;
use crate::transfer::export::exported::unwritten;

/// What a backup is bound to.
pub(crate) const BACKUP: AssociatedData<'static> =
    AssociatedData { kind: Kind::Backup, scope: &["backup"], name: "backup" };

/// Seals the text into a new file.
pub(super) struct SealedWriter {
    sealer: StreamSealer,
    file: NewFile,
}

impl SealedWriter {
    pub(super) fn create(path: &Path, folder: &Folder) -> Result<Self> {
        let entries = key_list::read(&*folder.root)?.map(|list| list.entries).unwrap_or_default();
        let writing = entries.first().ok_or(Error::NoKey)?;
        let key = folder.writing_key()?;
        if key.id() != writing.kid {
            let reason = "the store's key was changed just now; try again";
            return Err(Error::damaged(folder.root.path(), reason));
        }
        let mut file = NewFile::create(path)?;
        let line = key_list::copy_bytes(writing)?;
        file.write_all(&line).map_err(unwritten)?;
        Ok(Self { sealer: StreamSealer::new(key, &BACKUP)?, file })
    }

    pub(super) fn keep(self) -> Result<()> {
        let Self { sealer, mut file } = self;
        sealer.finish(&mut |bytes| file.write_all(bytes).map_err(unwritten))?;
        file.keep()
    }
}

impl Write for SealedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Self { sealer, file } = self;
        let mut failed = None;
        let sealed = sealer.write(bytes, &mut |sealed| {
            file.write_all(sealed).map_err(|error| {
                let kind = error.kind();
                failed = Some(error);
                unwritten(kind.into())
            })
        });
        match (sealed, failed) {
            (Ok(()), _) => Ok(bytes.len()),
            (Err(_), Some(error)) => Err(error),
            (Err(error), None) => Err(io::Error::other(error)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
