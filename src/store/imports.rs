//! Which imported messages were forgotten, so that no later import brings them back.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::store::document::{self, Document};
use crate::store::origin::Origin;
use crate::store::pen::Pen;

/// The most that are noted, so that the file stays readable. Whatever is forgotten beyond them is forgotten all the
/// same.
const MOST: usize = 700_000;

/// The text of the document: the origins' bytes, sorted, each once.
pub(crate) fn parse(bytes: &[u8]) -> Option<BTreeSet<Origin>> {
    let (origins, rest) = bytes.as_chunks();
    let parsed: BTreeSet<_> = origins.iter().copied().map(Origin::from_bytes).collect();
    (rest.is_empty() && write(&parsed) == bytes).then_some(parsed)
}

pub(crate) fn write(origins: &BTreeSet<Origin>) -> Vec<u8> {
    origins.iter().take(MOST).flat_map(|origin| origin.to_bytes()).collect()
}

/// Makes the empty list before the first import, as the sign that there are messages to be noted.
pub(crate) fn begin(pen: &Pen<'_>) -> Result<()> {
    match document::read(pen.folder, Document::Imports)? {
        Some(_) => Ok(()),
        None => pen.replace(Document::Imports, &[]),
    }
}

/// Notes imported messages that are about to be forgotten; before they are, so that an interruption leaves at most one
/// noted that is still there, which does no harm. Does nothing where nothing was ever imported. A list that does not
/// open keeps nothing from being forgotten.
pub(crate) fn note(pen: &Pen<'_>, origins: &BTreeSet<Origin>) -> Result<()> {
    if origins.is_empty() {
        return Ok(());
    }
    let mut noted = match document::read(pen.folder, Document::Imports) {
        Ok(None) => return Ok(()),
        Ok(Some(bytes)) => parse(&bytes).unwrap_or_default(),
        Err(Error::Damaged { .. }) => BTreeSet::new(),
        Err(
            error @ (Error::WrongKey { .. } | Error::NewerFormat { .. } | Error::NotPlain { .. }),
        ) => {
            tracing::warn!(%error, "what is forgotten now would come back with another import");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let before = noted.len();
    for &origin in origins {
        if noted.len() >= MOST {
            tracing::warn!(
                "the list of forgotten imports is full: another import may bring some back"
            );
            break;
        }
        noted.insert(origin);
    }
    if noted.len() == before { Ok(()) } else { pen.replace(Document::Imports, &write(&noted)) }
}
