//! Writes the presets document.

use crate::error::{Error, Result};
use crate::store::commit::committer::Committer;
use crate::store::folder::document;
use crate::store::read::tail::Tail;
use crate::store::record::document::Document;
use crate::store::record::encoding::LONGEST_RECORD;
use crate::store::record::layout::QUARANTINE;
use crate::store::settings::presets_document::Presets;
use crate::store::settings::profile::Profile;

/// Writes the document durably if the presets changed. It is written before the settings: a document with a higher
/// revision than theirs is valid.
pub(crate) fn put(
    committer: &Committer<'_>,
    before: &Profile,
    profile: &mut Profile,
) -> Result<()> {
    let is_same = (&profile.presets, &profile.imported_presets)
        == (&before.presets, &before.imported_presets);
    // In stores from before there was this document, the settings contain the presets.
    let is_moved = profile.presets_rev > 0
        || (profile.presets.is_empty() && profile.imported_presets.is_empty());
    let is_known = profile.presets_are_unknown == before.presets_are_unknown;
    if is_same && is_known && is_moved && profile.presets_rev == before.presets_rev {
        return Ok(());
    }
    profile.presets_rev = profile.presets_rev.max(before.presets_rev.saturating_add(1));
    profile.presets_are_unknown = false;
    let text = Presets::of(profile).bytes();
    if text.is_empty() || text.len() > LONGEST_RECORD {
        return Err(Error::InvalidMessage { reason: "the presets are too long to store" });
    }
    if matches!(document::open(committer.folder, Document::Presets)?, Some(Err(_))) {
        document::check_replaceable(committer.folder, Document::Presets)?;
        let name = Document::Presets.file_name().as_bytes();
        committer.folder.directory.move_into(name, QUARANTINE)?;
    }
    committer.replace(Document::Presets, &text)
}

/// Continues with the stored presets, even if a newer revision is missing.
pub(crate) fn accept(committer: &Committer<'_>, tail: &mut Tail) -> Result<()> {
    if !tail.profile.presets_are_unknown {
        return Ok(());
    }
    let there = match Presets::open(committer.folder)? {
        Ok(there) => there,
        // Another key or a newer program may still read it.
        Err(kind) if kind.may_open_later() => return Ok(()),
        Err(_) => Presets::default(),
    };
    committer.change_profile(tail, |profile| {
        profile.presets = there.presets;
        profile.imported_presets = there.imported_presets;
        profile.presets_are_unknown = false;
    })
}
