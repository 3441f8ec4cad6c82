//! Finds and reads the files of a source.

mod file;
mod folder;
pub(crate) mod lines;

use std::io::{self, Read};
use std::path::Path;

use sottovoce::import::{ImportedArtifact, RefusalReason};
use sottovoce::store::NewArtifact;
use sottovoce::{Error, Result, Scope};

pub(crate) use file::{Bytes, Refusable, SourceFile};
pub(crate) use folder::{EntryKind, Folder, misnamed};

/// Opens a file that the user named. Follows links on the way to it, because people link their files.
pub(crate) fn open_named(path: &Path) -> Result<SourceFile> {
    let (folder, name) = Folder::of_file(path)?;
    let absent = || Error::io("open the file", path, io::ErrorKind::NotFound.into());
    folder.open(&name)?.ok_or_else(absent)
}

/// An artifact whose contents are in that file of a folder. See [`ImportedArtifact::new`] for `id`.
pub(crate) fn artifact(
    id: (&str, &str, &str),
    artifact: NewArtifact,
    folder: &Folder,
    name: String,
) -> ImportedArtifact {
    let (place, folder) = (folder.place(&name), folder.clone());
    let open = move || -> Result<Box<dyn Read + Send>> {
        let absent = || {
            let path = folder.path().join(&name);
            Error::io("open the file", path, io::ErrorKind::NotFound.into())
        };
        Ok(Box::new(folder.open(&name)?.ok_or_else(absent)?))
    };
    ImportedArtifact::new(id, artifact, place, Box::new(open))
}

/// The scope [`Scope::Named`] with this id, if a store accepts it.
pub(crate) fn named(id: &str) -> std::result::Result<Scope, RefusalReason> {
    storable(Scope::Named { id: id.to_owned() })
}

/// The scope, if a store accepts it.
pub(crate) fn storable(scope: Scope) -> std::result::Result<Scope, RefusalReason> {
    match scope.folder() {
        Err(Error::InvalidScope { reason }) => Err(RefusalReason::Unstorable(reason)),
        _ => Ok(scope),
    }
}
