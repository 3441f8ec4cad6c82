//! The settings of a conversation as they are stored: the document itself, the tombstones and the presets.
//!
//! Tombstones say what was deleted and may not come back. They only grow, so they are sealed in a document of their
//! own, as settings that have nothing else. The store's presets have one too, beside the default conversation's
//! settings. In memory both are part of the settings, which record the documents' revisions.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::store::folder::{Folder, HeadState, document};
use crate::store::record::document::Document;
use crate::store::record::encoding::object;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::persona::Preset;
use crate::store::record::profile::Profile;

/// Reads the settings that belong to a head. Returns a finding if they are missing, damaged or outdated. A
/// conversation without settings has the defaults and no file.
pub(crate) fn read(
    folder: &Folder,
    head: HeadState,
    known: Option<&Arc<Profile>>,
) -> Result<(Arc<Profile>, Option<Finding>)> {
    let rev = match head {
        HeadState::Known(head) => Some(head.profile()),
        HeadState::Absent | HeadState::Damaged => None,
    };
    if let Some(known) = known.filter(|known| known.rev > 0 && Some(known.rev) == rev)
        && !(known.is_unknown || known.presets_are_unknown)
    {
        return Ok((Arc::clone(known), None));
    }
    let (mut profile, kind) = read_part(folder, Document::Profile, rev.unwrap_or(0))?;
    // If the head tells of no settings, their writer was interrupted, or the head was put back. Settings that do not open
    // then belong to nobody.
    let finding = kind.filter(|_| rev != Some(0));
    let finding = finding.map(|kind| kind.in_file(Document::Profile.file_name()));
    profile.is_unknown = finding.is_some();
    let presets = presets_into(folder, &mut profile)?;
    let tombstones = tombstones_into(folder, &mut profile, known.map(Arc::as_ref))?;
    Ok((Arc::new(profile), finding.or(tombstones).or(presets)))
}

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
fn tombstones_into(
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
    let (there, kind) = read_part(folder, Document::Tombstones, rev)?;
    profile.tombstones_rev = rev.max(there.rev);
    profile.add_tombstones(there);
    profile.is_unknown |= kind.is_some();
    Ok(kind.map(|kind| kind.in_file(Document::Tombstones.file_name())))
}

/// The most bytes of the document: 1 MiB. A larger one accepts no more presets.
pub(crate) const MOST_PRESET_BYTES: usize = 1 << 20;

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
    size(&after) <= MOST_PRESET_BYTES.max(before)
}

/// Fails if the presets could not be read.
pub(crate) fn check_presets(profile: &Profile) -> Result<()> {
    if !profile.presets_are_unknown {
        return Ok(());
    }
    let place = Document::Presets.file_name().to_owned();
    let reason = "the presets cannot be read; a repair continues without them";
    Err(Error::Damaged { place, reason })
}

/// Adds the document's presets to the settings. Returns a finding if it cannot be read. If the settings themselves
/// are lost, the document is used whatever its revision.
fn presets_into(folder: &Folder, profile: &mut Profile) -> Result<Option<Finding>> {
    if profile.presets_rev == 0 && !profile.is_unknown {
        return Ok(None);
    }
    let (there, kind) = read_part(folder, Document::Presets, profile.presets_rev)?;
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
pub(crate) fn is_about_presets(finding: &Finding) -> bool {
    finding.file.as_deref() == Some(Document::Presets.file_name())
}

/// What a document of the settings says, and what is wrong with it. `told` is the lowest revision that it may have; 0 if it
/// may be absent.
pub(crate) fn read_part(
    folder: &Folder,
    document: Document,
    told: u64,
) -> Result<(Profile, Option<FindingKind>)> {
    let text = document::open(folder, document)?.unwrap_or(Err(FindingKind::Absent));
    Ok(match text.and_then(|text| object::<Profile>(&text).ok_or(FindingKind::BadRecord)) {
        Ok(there) => {
            let is_old = there.rev < told;
            (there, is_old.then_some(FindingKind::Outdated))
        }
        Err(FindingKind::Absent) if told == 0 => (Profile::default(), None),
        Err(kind) => (Profile::default(), Some(kind)),
    })
}

/// Whether a finding is about the settings themselves.
pub(crate) fn is_about_settings(finding: &Finding) -> bool {
    let documents = [Document::Profile, Document::Tombstones];
    documents.iter().any(|document| finding.file.as_deref() == Some(document.file_name()))
}
