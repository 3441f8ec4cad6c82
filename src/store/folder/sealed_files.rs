//! The sealed files of one kind, in a folder of their own: metadata of artifacts, snapshots, segments of the search index.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use crate::crypto::{AssociatedData, Kind, SealingKey};
use crate::directory::{Directory, EntryKind, TEMPORARY};
use crate::error::{Error, Result};
use crate::store::folder::{Folder, unreadable};
use crate::store::record::encoding::object;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::layout::QUARANTINE;

/// What there is to know of one kind of sealed files.
pub(crate) struct SealedFiles {
    pub(crate) kind: Kind,
    /// The name of the folder in the conversation's folder.
    pub(crate) folder: &'static str,
    pub(crate) directory: fn(&Folder) -> &Arc<dyn Directory>,
    /// Whether this is an id. A file's name is an id, or one with the ending.
    pub(crate) is_id: fn(&str) -> bool,
    pub(crate) ending: &'static str,
    /// Another file that belongs there.
    pub(crate) beside: Option<&'static str>,
    /// What is wrong with a file whose contents are something else.
    pub(crate) no_value: &'static str,
}

impl SealedFiles {
    /// The name of the sealed file.
    pub(crate) fn name(&self, id: &str) -> String {
        format!("{id}{}", self.ending)
    }

    /// The path of a file in the conversation's folder.
    pub(crate) fn place(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// What the file of that name is bound to.
    pub(crate) fn associated<'a>(&self, scope: &'a [&'a str], name: &'a str) -> AssociatedData<'a> {
        AssociatedData::of(self.kind, scope, name)
    }

    /// The ids that have files, sorted, and findings about other files.
    pub(crate) fn list(&self, folder: &Folder) -> Result<(Vec<String>, Vec<Finding>)> {
        let (mut ids, mut foreign) = (Vec::new(), Vec::new());
        (self.directory)(folder).list(&mut |name, kind| {
            let text = str::from_utf8(name).unwrap_or_default();
            let id = text.strip_suffix(self.ending).unwrap_or(text);
            match kind {
                EntryKind::File if (self.is_id)(id) => ids.push(id.to_owned()),
                EntryKind::File if self.beside == Some(text) => {}
                EntryKind::Folder if text == QUARANTINE => {}
                _ => {
                    let is_leftover = name.starts_with(TEMPORARY.as_bytes());
                    let kind =
                        if is_leftover { FindingKind::Leftover } else { FindingKind::Foreign };
                    foreign.push(kind.in_file([self.folder.as_bytes(), b"/", name].concat()));
                }
            }
        })?;
        ids.sort_unstable();
        ids.dedup();
        Ok((ids, foreign))
    }

    /// The id in a file's name; otherwise whether the file belongs there.
    pub(crate) fn id_of<'a>(&self, name: &'a [u8]) -> std::result::Result<&'a str, bool> {
        let text = str::from_utf8(name).map_err(|_| false)?;
        let id = text.strip_suffix(self.ending).unwrap_or(text);
        let belongs = text == QUARANTINE || self.beside == Some(text);
        if (self.is_id)(id) { Ok(id) } else { Err(belongs) }
    }

    /// The plaintext of a file, or what is wrong with it.
    pub(crate) fn read(
        &self,
        folder: &Folder,
        id: &str,
    ) -> Result<std::result::Result<Zeroizing<Vec<u8>>, FindingKind>> {
        let name = self.name(id);
        match (self.directory)(folder).read(&name) {
            Ok(Some(bytes)) => {
                folder.unseal(&self.associated(&folder.scope.parts(), &name), &bytes)
            }
            Ok(None) => Ok(Err(FindingKind::Absent)),
            Err(error) => Ok(Err(unreadable(error)?)),
        }
    }

    /// The value in a file, unless the check finds something wrong with it.
    pub(crate) fn open<T: DeserializeOwned>(
        &self,
        folder: &Folder,
        id: &str,
        check: impl FnOnce(&T) -> Option<FindingKind>,
    ) -> Result<std::result::Result<T, Finding>> {
        let kind = match self.read(folder, id)? {
            Err(kind) => kind,
            Ok(plaintext) => match object::<T>(&plaintext) {
                None => FindingKind::BadRecord,
                Some(value) => match check(&value) {
                    None => return Ok(Ok(value)),
                    Some(kind) => kind,
                },
            },
        };
        Ok(Err(kind.in_file(self.place(&self.name(id)))))
    }

    /// Replaces a file. It is durable on return. Requires the lock.
    pub(crate) fn write(
        &self,
        folder: &Folder,
        key: &SealingKey,
        id: &str,
        plaintext: &[u8],
    ) -> Result<()> {
        let name = self.name(id);
        let line = key.seal(&self.associated(&folder.scope.parts(), &name), plaintext)?;
        let directory = (self.directory)(folder);
        directory.replace(&name, &line)?;
        directory.sync()
    }

    /// Why a file that the settings list cannot be read.
    pub(crate) fn refusal(&self, folder: &Folder, finding: &Finding) -> Error {
        finding.refusal().unwrap_or_else(|| {
            let file = finding.file.as_deref().unwrap_or(self.folder);
            Error::Damaged {
                place: folder.directory.path().join(file).display().to_string(),
                reason: match finding.kind {
                    FindingKind::Absent => "it is gone",
                    FindingKind::Outdated => "an older state of it was put back",
                    FindingKind::Damaged(reason) => reason,
                    _ => self.no_value,
                },
            }
        })
    }
}
