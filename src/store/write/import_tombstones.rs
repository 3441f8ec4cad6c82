//! Tombstones: digests of messages that were forgotten, so that no later import brings them back. The settings record the
//! list's revision, which detects an older list that was put back.

use crate::error::{Error, Result};
use crate::scope::Scope;
use crate::store::folder::{Folder, document};
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::document::Document;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::import_digest::ImportTombstones;
use crate::store::record::profile::Profile;
use crate::store::write::committer::Committer;

/// What was forgotten in a conversation, as its own list says and, of conversations that were removed, that of the default
/// one.
///
/// # Errors
/// Those of [`current`].
pub(crate) fn all(reader: &Reader) -> Result<ImportTombstones> {
    let mut list = listed(&reader.folder, &*reader.settings()?)?;
    if *reader.folder.scope != Scope::Default {
        let root = reader.of_root();
        let mut more = listed(&root.folder, &*root.settings()?)?;
        list.origins.append(&mut more.origins);
        list.expired.append(&mut more.expired);
        list.removed = more.removed;
    }
    Ok(list)
}

/// What a conversation's own list says.
///
/// # Errors
/// Those of [`current`].
pub(crate) fn listed(folder: &Folder, profile: &Profile) -> Result<ImportTombstones> {
    let bytes = document::read(folder, Document::Imports)?;
    current(folder, profile, bytes.as_ref().map(|bytes| bytes.as_slice()))
}

/// Reads the list if it has the revision that the settings record.
///
/// # Errors
/// [`Error::Damaged`] if the list is older, missing or invalid, or if the settings could not be read.
pub(crate) fn current(
    folder: &Folder,
    profile: &Profile,
    bytes: Option<&[u8]>,
) -> Result<ImportTombstones> {
    let list = match bytes {
        None => ImportTombstones::default(),
        Some(bytes) => ImportTombstones::parse(bytes)
            .ok_or_else(|| damaged(folder, "it is not a list of forgotten imports"))?,
    };
    match profile.is_unknown || list.rev < profile.imports {
        true => Err(damaged(folder, OUTDATED)),
        false => Ok(list),
    }
}

const OUTDATED: &str = "it is not the newest list of forgotten imports, so an import would bring some of them back; a \
                        repair continues without the newest";

fn damaged(folder: &Folder, reason: &'static str) -> Error {
    Error::damaged(folder.directory.path().join(Document::Imports.file_name()), reason)
}

/// The revision of the stored list; 0 if none opens.
pub(crate) fn revision(folder: &Folder) -> Result<u64> {
    let list = match document::open(folder, Document::Imports)? {
        Some(Ok(bytes)) => ImportTombstones::parse(&bytes),
        _ => None,
    };
    Ok(list.map_or(0, |list| list.rev))
}

/// A finding about a list that opens, or that is missing.
pub(crate) fn verify(folder: &Folder, profile: &Profile) -> Result<Option<Finding>> {
    let kind = match document::open(folder, Document::Imports)? {
        None => (profile.imports > 0).then_some(FindingKind::Absent),
        // Reported with the other documents.
        Some(Err(_)) => None,
        Some(Ok(bytes)) => match ImportTombstones::parse(&bytes) {
            None => Some(FindingKind::BadRecord),
            Some(list) => (list.rev < profile.imports).then_some(FindingKind::Outdated),
        },
    };
    Ok(kind.map(|kind| kind.in_file(Document::Imports.file_name())))
}

/// Records messages that are forgotten. Other devices delete what this list says, so no message may be in it that is
/// still here. A list that does not open does not prevent forgetting. An outdated list stays outdated until a repair.
pub(crate) fn note(
    committer: &Committer<'_>,
    tail: &mut Tail,
    more: &ImportTombstones,
) -> Result<()> {
    if more.len() == 0 {
        return Ok(());
    }
    let told = tail.profile.imports;
    let mut noted = match document::read(committer.folder, Document::Imports) {
        Ok(None) => ImportTombstones::default(),
        Ok(Some(bytes)) => ImportTombstones::parse(&bytes).unwrap_or_default(),
        Err(Error::Damaged { .. }) => ImportTombstones::default(),
        Err(
            error @ (Error::WrongKey { .. }
            | Error::KeyChanged { .. }
            | Error::NewerFormat { .. }
            | Error::NotPlain { .. }),
        ) => {
            tracing::warn!(%error, "what is forgotten now would come back with another import");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    if !noted.take(more) {
        return Ok(());
    }
    let is_newest = noted.rev >= told;
    if is_newest {
        noted.rev = noted.rev.saturating_add(1);
    }
    committer.replace(Document::Imports, &noted.to_bytes())?;
    if !is_newest || !tail.knows_settings() {
        return Ok(());
    }
    committer.change_profile(tail, |profile| profile.imports = noted.rev)
}
