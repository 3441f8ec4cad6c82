//! Sealed documents: each is replaced as a whole.

use std::io;

use zeroize::Zeroizing;

use crate::crypto::{HEADER, StreamOpener, text_length};
use crate::directory::Source;
use crate::error::{Error, Result};
use crate::store::folder::{Folder, unreadable};
use crate::store::record::document::Document;
use crate::store::record::finding::{Finding, FindingKind};

/// The most bytes of a document that is sealed as a stream.
const LONGEST: u64 = 1 << 30;

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
        // The tail reports findings about the settings and what belongs to them.
        if !matches!(document, Document::Presets | Document::Profile | Document::Tombstones) {
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
    let bytes = match folder.directory.read(document.file_name()) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        // It may be a stream that is longer than any envelope.
        Err(error @ Error::NotPlain { .. }) if document.may_be_long() => {
            long(folder, document)?.ok_or(error)?
        }
        Err(error) => return Err(error),
    };
    if document.may_be_long() && bytes.first().copied().is_some_and(is_stream) {
        let opened = open_long(folder, document, &bytes)?;
        return Ok(Some(opened.map(|long| long.text)));
    }
    folder.unseal(&document.associated(&folder.scope.parts()), &bytes).map(Some)
}

/// The bytes of a document that is sealed as a stream; `None` if there is none, or if it is an envelope.
pub(crate) fn long(folder: &Folder, document: Document) -> Result<Option<Vec<u8>>> {
    let name = document.file_name();
    let Some(source) = folder.directory.open(name)? else { return Ok(None) };
    let failed = |error| Error::io("read the file", folder.directory.path().join(name), error);
    let mut first = [0];
    let read = source.read_at(0, &mut first).map_err(failed)?;
    if read == 0 || !is_stream(first[0]) {
        return Ok(None);
    }
    if source.size() > LONGEST {
        let found = "a file over 1 GiB";
        return Err(Error::NotPlain { path: folder.directory.path().join(name), found });
    }
    Ok(Some(whole(&*source).map_err(failed)?))
}

/// Whether a file with this first byte is a stream. It begins with the length of its header.
fn is_stream(first: u8) -> bool {
    usize::from(first) == HEADER
}

/// All bytes of an open file.
pub(crate) fn whole(source: &dyn Source) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(source.size()).unwrap_or(0)];
    let mut at = 0;
    while let Some(rest) = bytes.get_mut(at..).filter(|rest| !rest.is_empty()) {
        match source.read_at(at as u64, rest)? {
            0 => break,
            read => at += read,
        }
    }
    bytes.truncate(at);
    Ok(bytes)
}

/// A document that was sealed as a stream, and the id of the key that sealed it.
pub(crate) struct LongDocument {
    pub(crate) text: Zeroizing<Vec<u8>>,
    pub(crate) kid: String,
}

/// Opens a document that is sealed as a stream.
pub(crate) fn open_long(
    folder: &Folder,
    document: Document,
    sealed: &[u8],
) -> Result<Result<LongDocument, FindingKind>> {
    let length = sealed.len() as u64;
    let (Some(header), Some(size)) = (sealed.first_chunk::<HEADER>(), text_length(length)) else {
        return Ok(Err(FindingKind::Damaged("it is cut off")));
    };
    let scope = folder.scope.parts();
    let associated = document.associated(&scope);
    let mut text = Zeroizing::new(Vec::with_capacity(usize::try_from(size).unwrap_or(0)));
    for key in folder.sealing_keys()? {
        let key = key?;
        text.clear();
        if StreamOpener::new(key, &associated, header, length)
            .and_then(|opener| opener.open_all(sealed, &mut text))
            .is_some()
        {
            return Ok(Ok(LongDocument { text, kid: key.id().to_owned() }));
        }
    }
    Ok(Err(FindingKind::Unopenable))
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
