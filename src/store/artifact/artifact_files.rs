//! Where a conversation's artifacts lie: the contents as `{id}`, what is known of them as `{id}.meta`.

use std::collections::BTreeMap;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::blob::{EntryKind, LOCK, TEMPORARY};
use crate::crypto::{Kind, Place};
use crate::error::{Error, Result};
use crate::store::artifact::contents::{self, ArtifactContents};
use crate::store::commit::committer::Committer;
use crate::store::folder::{Folder, unreadable};
use crate::store::read::tail::Tail;
use crate::store::record::artifact::{Artifact, ArtifactKind, is_id};
use crate::store::record::encoding::object;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::layout::{ARTIFACTS, QUARANTINE};
use crate::store::settings::profile::Profile;

/// How the names end of what is known of them.
const META: &str = ".meta";

/// An artifact by its id; `None` where there is none.
pub(crate) fn read(folder: &Folder, profile: &Profile, id: &str) -> Result<Option<Artifact>> {
    if profile.artifact(id).is_none() {
        return Ok(None);
    }
    let finding = match open_meta(folder, id)? {
        Ok(artifact) => return Ok(Some(artifact)),
        Err(finding) => finding,
    };
    Err(refusal(folder, &finding))
}

/// An artifact's contents; `None` where there is no such artifact.
pub(crate) fn read_contents(
    folder: &Folder,
    profile: &Profile,
    id: &str,
) -> Result<Option<ArtifactContents>> {
    let Some(artifact) = read(folder, profile, id)? else { return Ok(None) };
    match contents::open(folder, artifact)? {
        Ok(contents) => Ok(Some(contents)),
        Err(kind) => Err(refusal(folder, &kind.in_file(place(id)))),
    }
}

/// The artifact that has these bytes already, if there is one. A tool's result is its message's own and goes with it, so
/// nothing else may stand on it, nor it on anything else.
pub(crate) fn same(
    folder: &Folder,
    profile: &Profile,
    kind: &ArtifactKind,
    sha256: &str,
) -> Result<Option<Artifact>> {
    if *kind == ArtifactKind::ToolResult {
        return Ok(None);
    }
    for (id, _) in profile.listed_artifacts().filter(|(_, known)| *known == sha256) {
        let there = read(folder, profile, id)?;
        if let Some(artifact) = there.filter(|there| there.kind != ArtifactKind::ToolResult) {
            return Ok(Some(artifact));
        }
    }
    Ok(None)
}

/// All of them, the oldest first, and what is wrong with the others.
pub(crate) fn list(folder: &Folder, profile: &Profile) -> Result<(Vec<Artifact>, Vec<Finding>)> {
    let (mut artifacts, mut findings) = (Vec::new(), Vec::new());
    for (id, _) in profile.listed_artifacts() {
        match open_meta(folder, id)? {
            Ok(artifact) => artifacts.push(artifact),
            Err(finding) => findings.push(finding),
        }
    }
    artifacts.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    Ok((artifacts, findings))
}

/// Lists an artifact whose contents have been published under that key: first what is known of it, then in the
/// settings that it is there. Where the same bytes have been added meanwhile, or under another key than the one that
/// writes now, the contents go again; the artifact that is there, if there is one.
pub(crate) fn file(
    committer: &Committer<'_>,
    tail: &mut Tail,
    artifact: &Artifact,
    kid: &str,
) -> Result<Option<Artifact>> {
    let same = check_new(committer, tail, artifact, kid);
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

/// The artifact that has the same bytes, if one is listed.
///
/// # Errors
/// Where the new one cannot be listed.
fn check_new(
    committer: &Committer<'_>,
    tail: &Tail,
    artifact: &Artifact,
    kid: &str,
) -> Result<Option<Artifact>> {
    committer.check_settings(tail)?;
    let same = same(committer.folder, &tail.profile, &artifact.kind, &artifact.sha256)?;
    if same.is_some() {
        return Ok(same);
    }
    if kid != committer.key.id() {
        return Err(Error::Damaged {
            place: place(&artifact.id),
            reason: "the store's key was changed while it was sealed; add it again",
        });
    }
    Ok(None)
}

/// Deletes artifacts: first in the settings, so that none of them ever comes back.
pub(crate) fn delete<'a>(
    committer: &Committer<'_>,
    tail: &mut Tail,
    ids: impl Iterator<Item = &'a str> + Clone,
) -> Result<()> {
    let there = |id: &&str| tail.profile.artifact(id).is_some();
    if tail.knows_settings() && ids.clone().any(|id| there(&id)) {
        let listed: Vec<_> = ids.clone().filter(there).collect();
        committer.change_profile(tail, |profile| {
            for id in listed {
                profile.artifacts.insert(id.to_owned(), String::new());
            }
        })?;
    }
    let mut any = false;
    for id in ids.filter(|id| is_id(id)) {
        // What is known of it goes last: it names what is left to be removed.
        committer.folder.artifacts.remove(id)?;
        committer.folder.artifacts.remove(&meta_name(id))?;
        any = true;
    }
    if any { committer.folder.artifacts.sync() } else { Ok(()) }
}

/// Removes what interrupted additions left behind, unless one goes on.
pub(crate) fn sweep_leftovers(folder: &Folder) -> Result<()> {
    if folder.artifacts.links(LOCK)? == 0 {
        return Ok(());
    }
    match folder.artifacts.lock(Duration::ZERO) {
        Ok(lock) => {
            folder.artifacts.sweep()?;
            lock.finish();
            Ok(())
        }
        Err(Error::LockTimeout { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes what an adding under that id left behind when it was killed before the artifact was listed. Only while nobody
/// else adds anything.
pub(crate) fn remove_leftover(folder: &Folder, profile: &Profile, id: &str) -> Result<()> {
    let is_leftover = is_id(id)
        && !profile.is_unknown
        && !profile.has_had_artifact(id)
        && folder.artifacts.links(id)? > 0
        && is_ours(folder, id)?;
    if is_leftover { folder.artifacts.remove(id).map(drop) } else { Ok(()) }
}

/// Removes what is in no list, because that is asked for: an adding or a deletion that was interrupted, or what a backup
/// has brought back. Only what is surely one of this conversation's.
pub(crate) fn sweep(committer: &Committer<'_>, tail: &Tail) -> Result<()> {
    if !tail.knows_settings() {
        return Ok(());
    }
    let mut removed = false;
    for id in names(committer.folder, &tail.profile)?.unlisted {
        if is_ours(committer.folder, &id)? {
            committer.folder.artifacts.remove(&id)?;
            committer.folder.artifacts.remove(&meta_name(&id))?;
            removed = true;
        }
    }
    if removed { committer.folder.artifacts.sync() } else { Ok(()) }
}

/// The listing to go on with: what was listed and is there, or, where nobody knows what was listed, all that opens.
pub(crate) fn there(folder: &Folder, tail: &Tail) -> Result<BTreeMap<String, String>> {
    let mut there = BTreeMap::new();
    if !tail.knows_settings() {
        for id in ids(folder)? {
            if let Ok(artifact) = open_meta(folder, &id)?
                && folder.artifacts.links(&id)? > 0
            {
                there.insert(id, artifact.sha256.clone());
            }
        }
        return Ok(there);
    }
    for (id, sha256) in &tail.profile.artifacts {
        let files = [id.clone(), meta_name(id)];
        let mut missing = false;
        for file in &files {
            missing |= folder.artifacts.links(file)? == 0;
        }
        // What is there and does not open may yet be mended.
        let sha256 = if missing { String::new() } else { sha256.clone() };
        there.insert(id.clone(), sha256);
    }
    Ok(there)
}

/// What is wrong with a conversation's artifacts. Reads them from end to end.
pub(crate) fn verify(folder: &Folder, profile: &Profile) -> Result<Vec<Finding>> {
    let (artifacts, mut findings) = list(folder, profile)?;
    for artifact in artifacts {
        let place = place(&artifact.id);
        match contents::open(folder, artifact)? {
            Ok(contents) => findings.extend(contents.check()?.map(|kind| kind.in_file(place))),
            Err(kind) => findings.push(kind.in_file(place)),
        }
    }
    let names = names(folder, profile)?;
    for id in names.unlisted {
        let kind = match is_ours(folder, &id)? {
            true => FindingKind::Resurrected,
            false => FindingKind::Unopenable,
        };
        findings.push(kind.in_file(place(&id)));
    }
    findings.extend(names.foreign);
    Ok(findings)
}

/// Whether a file is nothing that anybody could read.
pub(crate) fn is_useless(folder: &Folder, name: &[u8]) -> Result<bool> {
    let Ok(name) = str::from_utf8(name) else { return Ok(true) };
    let id = name.strip_suffix(META).unwrap_or(name);
    if !is_id(id) {
        return Ok(name != QUARANTINE && name != LOCK);
    }
    let kind = match open_meta(folder, id)? {
        Err(finding) => finding.kind,
        Ok(artifact) => match contents::open(folder, artifact)? {
            Err(kind) => kind,
            Ok(contents) => match contents.check()? {
                Some(kind) => kind,
                None => return Ok(false),
            },
        },
    };
    Ok(!kind.may_open_later() && kind != FindingKind::Absent)
}

/// Whether what lies under an id was sealed for this conversation.
fn is_ours(folder: &Folder, id: &str) -> Result<bool> {
    if open_meta(folder, id)?.is_ok() {
        return Ok(true);
    }
    match folder.artifacts.open(id) {
        Ok(Some(source)) => Ok(contents::opener(folder, id, &*source)?.is_ok()),
        Ok(None) => Ok(false),
        Err(error) => unreadable(error).map(|_| false),
    }
}

/// The ids that there are files of.
pub(crate) fn ids(folder: &Folder) -> Result<Vec<String>> {
    Ok(names(folder, &Profile::default())?.unlisted)
}

#[derive(Default)]
struct Names {
    unlisted: Vec<String>,
    foreign: Vec<Finding>,
}

fn names(folder: &Folder, profile: &Profile) -> Result<Names> {
    let mut names = Names::default();
    folder.artifacts.list(&mut |name, kind| {
        let text = str::from_utf8(name).unwrap_or_default();
        let id = text.strip_suffix(META).unwrap_or(text);
        match kind {
            EntryKind::File if is_id(id) => {
                if profile.artifact(id).is_none() {
                    names.unlisted.push(id.to_owned());
                }
            }
            EntryKind::File if text == LOCK => {}
            EntryKind::Folder if text == QUARANTINE => {}
            _ if name.starts_with(TEMPORARY.as_bytes()) => {
                names.foreign.push(FindingKind::Leftover.in_file(place_bytes(name)));
            }
            _ => names.foreign.push(FindingKind::Foreign.in_file(place_bytes(name))),
        }
    })?;
    names.unlisted.sort_unstable();
    names.unlisted.dedup();
    Ok(names)
}

/// Where an artifact's contents lie within the conversation's folder.
pub(crate) fn place(id: &str) -> String {
    format!("{ARTIFACTS}/{id}")
}

fn place_bytes(name: &[u8]) -> Vec<u8> {
    [ARTIFACTS.as_bytes(), b"/", name].concat()
}

pub(crate) fn meta_name(id: &str) -> String {
    format!("{id}{META}")
}

/// The place that what is known of an artifact is sealed for, given its file's name.
pub(crate) fn meta_seal<'a>(scope: &'a [&'a str], name: &'a str) -> Place<'a> {
    Place::of(Kind::ArtifactMeta, scope, name)
}

/// Keeps what is known of an artifact.
pub(crate) fn put_meta(committer: &Committer<'_>, artifact: &Artifact) -> Result<()> {
    let unwritable = |_| Error::InvalidMessage { reason: "the artifact cannot be written as JSON" };
    let plaintext = Zeroizing::new(serde_json::to_vec(artifact).map_err(unwritable)?);
    let name = meta_name(&artifact.id);
    let line =
        committer.key.seal(&meta_seal(&committer.folder.scope.parts(), &name), &plaintext)?;
    committer.folder.artifacts.replace(&name, &line)?;
    committer.folder.artifacts.sync()
}

fn open_meta(folder: &Folder, id: &str) -> Result<Result<Artifact, Finding>> {
    let name = meta_name(id);
    let found = |kind: FindingKind| Ok(Err(kind.in_file(place(&name))));
    let bytes = match folder.artifacts.read(&name) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return found(FindingKind::Absent),
        Err(error) => return found(unreadable(error)?),
    };
    match folder.unseal(&meta_seal(&folder.scope.parts(), &name), &bytes)? {
        Err(kind) => found(kind),
        Ok(plaintext) => match object::<Artifact>(&plaintext) {
            Some(artifact) if artifact.id == id => Ok(Ok(artifact)),
            _ => found(FindingKind::BadRecord),
        },
    }
}

fn refusal(folder: &Folder, finding: &Finding) -> Error {
    finding.refusal().unwrap_or_else(|| {
        let file = finding.file.as_deref().unwrap_or(ARTIFACTS);
        Error::Damaged {
            place: folder.blobs.path().join(file).display().to_string(),
            reason: match finding.kind {
                FindingKind::Absent => "it is gone",
                FindingKind::Damaged(reason) => reason,
                _ => "its seal does not fit, or what is in it is no artifact",
            },
        }
    })
}
