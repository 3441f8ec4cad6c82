//! Tombstones: digests of messages that were forgotten, so that no later import brings them back. The settings record the
//! list's revision, which detects an older list that was put back.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::scope::Scope;
use crate::store::commit::committer::Committer;
use crate::store::folder::Folder;
use crate::store::folder::document;
use crate::store::read::reader::Reader;
use crate::store::read::tail::Tail;
use crate::store::record::document::Document;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::import_digest::Origin;
use crate::store::settings::profile::Profile;

/// The most digests in the list, 128 MiB of them, which is read whole. Messages beyond it are forgotten but not listed.
const MOST: usize = 8_000_000;

/// Length of a revision in bytes.
const REVISION: usize = 8;

/// What stands between the two parts of the list: a digest that no message has.
const BETWEEN: [u8; 16] = [0; 16];

/// The list at one revision.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ImportTombstones {
    pub(crate) rev: u64,
    /// What somebody wanted forgotten.
    pub(crate) origins: BTreeSet<Origin>,
    /// What limits removed. It does not come back either, but other devices and exports may keep it.
    pub(crate) expired: BTreeSet<Origin>,
}

impl ImportTombstones {
    /// Parses the document: the revision, left out if it is 0, then the digests, sorted and unique. After a digest of
    /// zeros, those of messages that limits removed follow in the same way.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (rev, rest) = match bytes.split_first_chunk::<REVISION>() {
            Some((rev, rest)) if bytes.len() % 16 == REVISION => (u64::from_be_bytes(*rev), rest),
            _ => (0, bytes),
        };
        let (digests, rest) = rest.as_chunks();
        let mut parts = digests
            .split(|digest| *digest == BETWEEN)
            .map(|part| part.iter().copied().map(Origin::from_bytes).collect::<BTreeSet<_>>());
        let (origins, expired) = (parts.next().unwrap_or_default(), parts.next());
        let is_whole = parts.next().is_none() && rest.is_empty();
        let parsed = Self { rev, origins, expired: expired.unwrap_or_default() };
        (is_whole && parsed.to_bytes() == bytes).then_some(parsed)
    }

    /// Whether an import may not bring the message back.
    pub(crate) fn has(&self, origin: Origin) -> bool {
        self.origins.contains(&origin) || self.expired.contains(&origin)
    }

    /// How many digests there are.
    fn len(&self) -> usize {
        self.origins.len() + self.expired.len()
    }

    /// Adds what another list has. Returns whether that was anything, and logs what there is no room for.
    fn take(&mut self, more: &Self) -> bool {
        let mut changed = false;
        let wanted = more.origins.iter().map(|origin| (*origin, true));
        for (origin, is_wanted) in wanted.chain(more.expired.iter().map(|origin| (*origin, false)))
        {
            if self.origins.contains(&origin) || !is_wanted && self.expired.contains(&origin) {
                continue;
            }
            let was_expired = is_wanted && self.expired.remove(&origin);
            if !was_expired && self.len() >= MOST {
                tracing::warn!("the list of forgotten messages is full: some may come back");
                return changed;
            }
            let part = if is_wanted { &mut self.origins } else { &mut self.expired };
            changed |= part.insert(origin);
        }
        changed
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let rev = self.rev.to_be_bytes();
        let mut bytes = Vec::with_capacity(REVISION + 16 * (self.len() + 1));
        bytes.extend(rev.into_iter().filter(|_| self.rev > 0));
        bytes.extend(self.origins.iter().flat_map(|origin| origin.to_bytes()));
        if !self.expired.is_empty() {
            bytes.extend(BETWEEN);
            bytes.extend(self.expired.iter().flat_map(|origin| origin.to_bytes()));
        }
        bytes
    }
}

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
        Some(bytes) => ImportTombstones::parse(bytes).ok_or_else(|| Error::Damaged {
            place: place(folder),
            reason: "it is not a list of forgotten imports",
        })?,
    };
    match profile.is_unknown || list.rev < profile.imports {
        true => Err(outdated(folder)),
        false => Ok(list),
    }
}

fn outdated(folder: &Folder) -> Error {
    Error::Damaged {
        place: place(folder),
        reason: "it is not the newest list of forgotten imports, so an import would bring some of them back; a repair \
                 continues without the newest",
    }
}

fn place(folder: &Folder) -> String {
    folder.directory.path().join(Document::Imports.file_name()).display().to_string()
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
