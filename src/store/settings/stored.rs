//! The settings of a conversation as they are stored, with the documents that belong to them.

use std::sync::Arc;

use crate::error::Result;
use crate::store::folder::{Folder, HeadState};
use crate::store::record::document::Document;
use crate::store::record::finding::Finding;
use crate::store::settings::profile::{Profile, read_part};
use crate::store::settings::{presets_document, tombstones};

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
    let presets = presets_document::read_into(folder, &mut profile)?;
    let tombstones = tombstones::read_into(folder, &mut profile, known.map(Arc::as_ref))?;
    Ok((Arc::new(profile), finding.or(tombstones).or(presets)))
}
