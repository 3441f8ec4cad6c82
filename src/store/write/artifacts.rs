//! Lists, restores and deletes artifacts under the lock.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::store::folder::artifact_files::{FILES, is_ours, open_meta, read, same, unlisted};
use crate::store::folder::{Folder, segments};
use crate::store::read::tail::Tail;
use crate::store::record::artifact::{Artifact, Reuse, is_id};
use crate::store::record::encoding::to_json;
use crate::store::record::seq_set::SeqSet;
use crate::store::write::committer::Committer;

/// Lists an artifact whose contents were published under this key: writes the metadata and then the settings. Removes
/// the contents again if the same bytes were added in the meantime or if another key writes now. Returns the existing
/// artifact if there is one.
pub(crate) fn file(
    committer: &Committer<'_>,
    tail: &mut Tail,
    artifact: &Artifact,
    kid: &str,
    reuse: Reuse,
) -> Result<Option<Artifact>> {
    let same = check_new(committer, tail, artifact, kid, reuse);
    if !matches!(same, Ok(None)) {
        if !matches!(&same, Ok(Some(same)) if same.id == artifact.id) {
            committer.folder.artifacts.remove(&artifact.id)?;
        }
        return same;
    }
    put_meta(committer, artifact)?;
    committer.change_profile(tail, |profile| {
        profile.artifacts.insert(artifact.id.clone(), artifact.sha256.clone());
    })?;
    Ok(None)
}

/// The listed artifact that serves in place of a new one, if there is one.
///
/// # Errors
/// What prevents listing the new artifact.
fn check_new(
    committer: &Committer<'_>,
    tail: &Tail,
    artifact: &Artifact,
    kid: &str,
    reuse: Reuse,
) -> Result<Option<Artifact>> {
    tail.check_settings(committer.folder)?;
    let (folder, profile) = (committer.folder, &tail.profile);
    let same = match reuse {
        Reuse::SameBytes => same(folder, profile, &artifact.kind, &artifact.sha256)?,
        Reuse::SameId => read(folder, profile, &artifact.id)?,
    };
    if same.is_some() {
        return Ok(same);
    }
    if kid != committer.key.id() {
        let reason = "the store's key was changed while it was sealed; add it again";
        return Err(Error::damaged(FILES.place(&artifact.id), reason));
    }
    Ok(None)
}

/// Deletes artifacts. Marks them in the settings first, so that nothing brings them back.
pub(crate) fn delete<'a>(
    committer: &Committer<'_>,
    tail: &mut Tail,
    ids: impl Iterator<Item = &'a str> + Clone,
) -> Result<()> {
    if ids.clone().next().is_none() {
        return Ok(());
    }
    let committer = &committer.with_reserve();
    // Which segments of the search index hold their words is known from the messages alone.
    segments::remove(committer.folder, &SeqSet::everything())?;
    if tail.knows_settings() {
        committer.change_profile(tail, |profile| {
            for id in ids.clone() {
                profile.artifacts.get_mut(id).map(String::clear);
            }
        })?;
    }
    let mut any = false;
    for id in ids.filter(|id| is_id(id)) {
        // Remove the metadata last: its name shows what is left to remove.
        committer.folder.artifacts.remove(id)?;
        committer.folder.artifacts.remove(&FILES.name(id))?;
        any = true;
    }
    if any { committer.folder.artifacts.sync() } else { Ok(()) }
}

/// Removes unlisted files on request: those of an interrupted addition or deletion, and those that a backup has
/// brought back. Removes only what is certainly this conversation's.
pub(crate) fn sweep(committer: &Committer<'_>, tail: &Tail) -> Result<()> {
    if !tail.knows_settings() {
        return Ok(());
    }
    let mut removed = false;
    for id in unlisted(committer.folder, &tail.profile)?.0 {
        if is_ours(committer.folder, &id)? {
            committer.folder.artifacts.remove(&id)?;
            committer.folder.artifacts.remove(&FILES.name(&id))?;
            removed = true;
        }
    }
    if removed { committer.folder.artifacts.sync() } else { Ok(()) }
}

/// The list to continue with: the listed artifacts that exist. If the settings are lost, all artifacts that open.
pub(crate) fn there(folder: &Folder, tail: &Tail) -> Result<BTreeMap<String, String>> {
    let mut there = BTreeMap::new();
    if !tail.knows_settings() {
        for id in FILES.list(folder)?.0 {
            if !tail.profile.has_deleted_artifact(&id)
                && let Ok(artifact) = open_meta(folder, &id)?
                && folder.artifacts.link_count(&id)? > 0
            {
                there.insert(id, artifact.sha256.clone());
            }
        }
        return Ok(there);
    }
    for (id, sha256) in &tail.profile.artifacts {
        let files = [id.clone(), FILES.name(id)];
        let mut missing = false;
        for file in &files {
            missing |= folder.artifacts.link_count(file)? == 0;
        }
        // A file that does not open may still be restored.
        let sha256 = if missing { String::new() } else { sha256.clone() };
        there.insert(id.clone(), sha256);
    }
    Ok(there)
}

/// Writes an artifact's metadata.
pub(crate) fn put_meta(committer: &Committer<'_>, artifact: &Artifact) -> Result<()> {
    FILES.write(committer.folder, committer.key, &artifact.id, &to_json(artifact)?)
}
