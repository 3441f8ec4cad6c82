//! Writes the documents that belong to the settings: tombstones and presets. They are written before the settings: a
//! document with a higher revision than theirs is valid.

use crate::error::Result;
use crate::store::folder::settings::read_part;
use crate::store::read::tail::Tail;
use crate::store::record::document::Document;
use crate::store::record::profile::Profile;
use crate::store::write::committer::Committer;

/// Writes the tombstones durably if there are new ones. None goes again: what was added again is listed in the settings,
/// and that counts.
pub(crate) fn put_tombstones(
    committer: &Committer<'_>,
    before: &Profile,
    profile: &mut Profile,
) -> Result<()> {
    let known = before.tombstones();
    let mut all = known.clone();
    all.add_tombstones(profile.tombstones());
    profile.tombstones_rev = before.tombstones_rev;
    let is_stored = match before.tombstones_rev {
        // In stores from before there was this document, the settings contain the tombstones.
        0 => all == Profile::default(),
        _ => all == known && !before.is_unknown,
    };
    if !is_stored {
        profile.tombstones_rev = before.tombstones_rev.saturating_add(1);
        all.rev = profile.tombstones_rev;
        put(committer, Document::Tombstones, &all)?;
    }
    profile.add_tombstones(all);
    Ok(())
}

/// Writes the presets durably if they changed.
pub(crate) fn put_presets(
    committer: &Committer<'_>,
    before: &Profile,
    profile: &mut Profile,
) -> Result<()> {
    let is_same = profile.presets == before.presets;
    // In stores from before there was this document, the settings contain the presets.
    let is_moved = profile.presets_rev > 0 || profile.presets.is_empty();
    let is_known = profile.presets_are_unknown == before.presets_are_unknown;
    if is_same && is_known && is_moved && profile.presets_rev == before.presets_rev {
        return Ok(());
    }
    profile.presets_rev = profile.presets_rev.max(before.presets_rev.saturating_add(1));
    profile.presets_are_unknown = false;
    put(committer, Document::Presets, &profile.presets_alone())
}

fn put(committer: &Committer<'_>, document: Document, part: &Profile) -> Result<()> {
    let text = part.to_plaintext()?;
    committer.set_aside(document)?;
    committer.replace(document, &text)
}

/// Continues with the stored presets, even if a newer revision is missing.
pub(crate) fn accept(committer: &Committer<'_>, tail: &mut Tail) -> Result<()> {
    if !tail.profile.presets_are_unknown {
        return Ok(());
    }
    let (there, kind) = read_part(committer.folder, Document::Presets, 0)?;
    // Another key or a newer program may still read it.
    if kind.is_some_and(|kind| kind.may_open_later()) {
        return Ok(());
    }
    committer.change_profile(tail, |profile| {
        profile.presets = there.presets;
        profile.imported_presets.extend(there.imported_presets);
        profile.presets_are_unknown = false;
    })
}
