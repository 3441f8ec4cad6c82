//! The store's presets, sealed in a document of their own beside the default conversation's settings so that these
//! stay small. In memory they are part of the settings, which record the document's revision.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::store::folder::Folder;
use crate::store::folder::document;
use crate::store::record::document::Document;
use crate::store::record::encoding::object;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::persona::Preset;
use crate::store::settings::profile::Profile;

/// The most bytes of the document: 1 MiB. A larger one accepts no more presets.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// The document's contents.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Presets {
    pub(crate) rev: u64,
    pub(crate) presets: BTreeMap<String, Preset>,
    #[serde(rename = "broughtPresets", default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) imported_presets: BTreeSet<String>,
}

impl Presets {
    pub(crate) fn of(profile: &Profile) -> Self {
        Self {
            rev: profile.presets_rev,
            presets: profile.presets.clone(),
            imported_presets: profile.imported_presets.clone(),
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads the document. The inner error says what is wrong with it.
    pub(crate) fn open(folder: &Folder) -> Result<Result<Self, FindingKind>> {
        Ok(match document::open(folder, Document::Presets)? {
            None => Err(FindingKind::Absent),
            Some(opened) => opened.and_then(|text| object(&text).ok_or(FindingKind::BadRecord)),
        })
    }
}

/// Whether the document has room for a preset, which may replace one with the same id.
pub(crate) fn has_room_for(profile: &Profile, preset: &Preset) -> bool {
    let mut after = Presets::of(profile);
    let before = after.bytes().len();
    after.presets.insert(preset.id.clone(), preset.clone());
    // A document from before there was a limit may still shrink.
    after.bytes().len() <= MOST_BYTES.max(before)
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
    let kind = match Presets::open(folder)? {
        Ok(there) if there.rev >= profile.presets_rev => {
            profile.presets_rev = there.rev;
            profile.presets = there.presets;
            profile.imported_presets = there.imported_presets;
            return Ok(None);
        }
        _ if profile.is_unknown => return Ok(None),
        Ok(_) => FindingKind::Outdated,
        Err(kind) => kind,
    };
    profile.presets_are_unknown = true;
    Ok(Some(kind.in_file(Document::Presets.file_name())))
}

/// Whether a finding is about the presets.
pub(crate) fn is_about(finding: &Finding) -> bool {
    finding.file.as_deref() == Some(Document::Presets.file_name())
}
