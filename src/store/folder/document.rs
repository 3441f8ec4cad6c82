//! Sealed documents: each is replaced as a whole.

use crate::store::record::document::Document;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::store::folder::{Folder, unreadable};
use crate::store::record::finding::{Finding, FindingKind};

/// The document's plaintext; `None` if there is none.
pub(crate) fn read(folder: &Folder, document: Document) -> Result<Option<Zeroizing<Vec<u8>>>> {
    // Only reading the head looks up the folder's path again, which detects that the folder was replaced.
    folder.head_bytes()?;
    match open(folder, document)? {
        None => Ok(None),
        Some(Ok(plaintext)) => Ok(Some(plaintext)),
        Some(Err(kind)) => Err(refusal(
            kind,
            folder.directory.path().join(document.file_name()).display().to_string(),
        )),
    }
}

/// Fails if another key or a newer program may still read the document. Damaged bytes may be replaced: nobody can
/// read them.
pub(crate) fn check_replaceable(folder: &Folder, document: Document) -> Result<()> {
    match read(folder, document) {
        Ok(_) | Err(Error::Damaged { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Findings about a folder's documents.
pub(crate) fn verify(folder: &Folder) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for document in Document::ALL {
        let kind = match open(folder, document) {
            Ok(None | Some(Ok(_))) => continue,
            Ok(Some(Err(kind))) => kind,
            Err(error) => unreadable(error)?,
        };
        // The tail reports findings about the settings and presets.
        if !matches!(document, Document::Presets | Document::Profile) {
            findings.push(kind.in_file(document.file_name()));
        }
    }
    Ok(findings)
}

/// The document's plaintext, or what is wrong with it; `None` if there is none.
pub(crate) fn open(
    folder: &Folder,
    document: Document,
) -> Result<Option<Result<Zeroizing<Vec<u8>>, FindingKind>>> {
    let Some(bytes) = folder.directory.read(document.file_name())? else {
        return Ok(None);
    };
    folder.unseal(&document.associated(&folder.scope.parts()), &bytes).map(Some)
}

/// The error for a document that does not open.
pub(crate) fn refusal(kind: FindingKind, place: String) -> Error {
    let reason = match kind {
        FindingKind::WrongKey { found } => return Error::WrongKey { place, found },
        FindingKind::NewerFormat(version) => return Error::NewerFormat { place, version },
        FindingKind::Damaged(reason) => reason,
        FindingKind::LegacyFormat => "it has the form of the older system's records",
        _ => {
            "its seal does not verify: it was changed, renamed, or copied from another conversation"
        }
    };
    Error::Damaged { place, reason }
}
