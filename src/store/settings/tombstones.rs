//! Tombstones: what was deleted and may not come back. They only grow, so they are sealed in a document of their own
//! beside the settings, as settings that have nothing else. In memory they are part of the settings, which record the
//! document's revision.

use crate::error::Result;
use crate::store::folder::Folder;
use crate::store::record::document::Document;
use crate::store::record::finding::Finding;
use crate::store::settings::profile::{self, Profile};

impl Profile {
    /// The tombstones alone.
    pub(crate) fn tombstones(&self) -> Self {
        let mut alone = Self {
            snapshots: self.snapshots.clone(),
            artifacts: self.artifacts.clone(),
            imported_presets: self.imported_presets.clone(),
            forgotten_scopes: self.forgotten_scopes.clone(),
            ..Self::default()
        };
        alone.snapshots.retain(|_, rev| *rev == 0);
        alone.artifacts.retain(|_, sha256| sha256.is_empty());
        alone
    }

    /// Adds tombstones. What is listed is there: its deletion was interrupted, or it was added again.
    pub(crate) fn add_tombstones(&mut self, more: Self) {
        for (id, none) in more.snapshots {
            self.snapshots.entry(id).or_insert(none);
        }
        for (id, none) in more.artifacts {
            self.artifacts.entry(id).or_insert(none);
        }
        self.imported_presets.extend(more.imported_presets);
        self.forgotten_scopes.extend(more.forgotten_scopes);
    }
}

/// Adds the document's tombstones to the settings. Settings without the newest ones are unknown, and the finding says
/// why. If the settings themselves are lost, the document is used whatever its revision.
pub(crate) fn read_into(
    folder: &Folder,
    profile: &mut Profile,
    known: Option<&Profile>,
) -> Result<Option<Finding>> {
    let rev = profile.tombstones_rev;
    if rev == 0 && !profile.is_unknown {
        return Ok(None);
    }
    if let Some(known) = known.filter(|known| !known.is_unknown && known.tombstones_rev == rev) {
        profile.add_tombstones(known.tombstones());
        return Ok(None);
    }
    let (there, kind) = profile::read_part(folder, Document::Tombstones, rev)?;
    profile.tombstones_rev = rev.max(there.rev);
    profile.add_tombstones(there);
    profile.is_unknown |= kind.is_some();
    Ok(kind.map(|kind| kind.in_file(Document::Tombstones.file_name())))
}
