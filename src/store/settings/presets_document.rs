//! The store's presets, sealed in a document of their own beside the default conversation's settings so that these
//! stay small. In memory they are part of the settings, which record the document's revision.

use crate::error::{Error, Result};
use crate::store::folder::Folder;
use crate::store::record::document::Document;
use crate::store::record::finding::Finding;
use crate::store::record::persona::Preset;
use crate::store::settings::profile::{self, Profile};

/// The most bytes of the document: 1 MiB. A larger one accepts no more presets.
pub(crate) const MOST_BYTES: usize = 1 << 20;

impl Profile {
    /// The presets alone, as their document has them.
    pub(crate) fn presets_alone(&self) -> Self {
        Self { rev: self.presets_rev, presets: self.presets.clone(), ..Self::default() }
    }
}

/// Whether the document has room for a preset, which may replace one with the same id.
pub(crate) fn has_room_for(profile: &Profile, preset: &Preset) -> bool {
    let size =
        |profile: &Profile| serde_json::to_vec(profile).map_or(usize::MAX, |text| text.len());
    let mut after = profile.presets_alone();
    let before = size(&after);
    after.presets.insert(preset.id.clone(), preset.clone());
    // A document from before there was a limit may still shrink.
    size(&after) <= MOST_BYTES.max(before)
}

/// Fails if the presets could not be read.
pub(crate) fn check(profile: &Profile) -> Result<()> {
    if !profile.presets_are_unknown {
        return Ok(());
    }
    let place = Document::Presets.file_name().to_owned();
    let reason = "the presets cannot be read; a repair continues without them";
    Err(Error::Damaged { place, reason })
}

/// Adds the document's presets to the settings. Returns a finding if it cannot be read. If the settings themselves
/// are lost, the document is used whatever its revision.
pub(crate) fn read_into(folder: &Folder, profile: &mut Profile) -> Result<Option<Finding>> {
    if profile.presets_rev == 0 && !profile.is_unknown {
        return Ok(None);
    }
    let (there, kind) = profile::read_part(folder, Document::Presets, profile.presets_rev)?;
    match kind {
        None => {
            profile.presets_rev = there.rev;
            profile.presets.extend(there.presets);
            // In documents from before the tombstones had one of their own.
            profile.imported_presets.extend(there.imported_presets);
            Ok(None)
        }
        Some(_) if profile.is_unknown => Ok(None),
        Some(kind) => {
            profile.presets_are_unknown = true;
            Ok(Some(kind.in_file(Document::Presets.file_name())))
        }
    }
}

/// Whether a finding is about the presets.
pub(crate) fn is_about(finding: &Finding) -> bool {
    finding.file.as_deref() == Some(Document::Presets.file_name())
}
