//! The files of a conversation's artifacts: the contents in `{id}`, the metadata in `{id}.meta`.

use crate::crypto::{AssociatedData, Kind};
use crate::directory::{EntryKind, LOCK, TEMPORARY};
use crate::error::{Error, Result};
use crate::store::folder::artifact_contents::{self, ArtifactContents};
use crate::store::folder::{Folder, unreadable};
use crate::store::record::artifact::{Artifact, ArtifactKind, is_id};
use crate::store::record::encoding::object;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::layout::{ARTIFACTS, QUARANTINE};
use crate::store::record::profile::Profile;

/// The extension of the metadata files.
const META: &str = ".meta";

/// Reads an artifact's metadata; `None` if there is no such artifact.
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

/// Opens an artifact's contents; `None` if there is no such artifact.
pub(crate) fn read_contents(
    folder: &Folder,
    profile: &Profile,
    id: &str,
) -> Result<Option<ArtifactContents>> {
    let Some(artifact) = read(folder, profile, id)? else { return Ok(None) };
    match artifact_contents::open(folder, artifact)? {
        Ok(contents) => Ok(Some(contents)),
        Err(kind) => Err(refusal(folder, &kind.in_file(place(id)))),
    }
}

/// The existing artifact with these bytes, if there is one. A tool result is never shared: it belongs to one message
/// and is deleted with it.
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

/// All artifacts, oldest first, and findings about those that cannot be read.
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

/// Removes the files of one interrupted addition whose artifact was never listed. Call it only while nobody else adds
/// artifacts.
pub(crate) fn remove_leftover(folder: &Folder, profile: &Profile, id: &str) -> Result<()> {
    let is_leftover = is_id(id)
        && !profile.is_unknown
        && !profile.has_had_artifact(id)
        && folder.artifacts.link_count(id)? > 0
        && is_ours(folder, id)?;
    if is_leftover { folder.artifacts.remove(id).map(drop) } else { Ok(()) }
}

/// Findings about a conversation's artifacts. Reads all contents.
pub(crate) fn verify(folder: &Folder, profile: &Profile) -> Result<Vec<Finding>> {
    let (artifacts, mut findings) = list(folder, profile)?;
    for artifact in artifacts {
        let place = place(&artifact.id);
        match artifact_contents::open(folder, artifact)? {
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

/// Whether no key and no program can read this file.
pub(crate) fn is_useless(folder: &Folder, name: &[u8]) -> Result<bool> {
    let Ok(name) = str::from_utf8(name) else { return Ok(true) };
    let id = name.strip_suffix(META).unwrap_or(name);
    if !is_id(id) {
        return Ok(name != QUARANTINE && name != LOCK);
    }
    let kind = match open_meta(folder, id)? {
        Err(finding) => finding.kind,
        Ok(artifact) => match artifact_contents::open(folder, artifact)? {
            Err(kind) => kind,
            Ok(contents) => match contents.check()? {
                Some(kind) => kind,
                None => return Ok(false),
            },
        },
    };
    Ok(!kind.may_open_later() && kind != FindingKind::Absent)
}

/// Whether the files of an id were sealed for this conversation.
pub(crate) fn is_ours(folder: &Folder, id: &str) -> Result<bool> {
    if open_meta(folder, id)?.is_ok() {
        return Ok(true);
    }
    match folder.artifacts.open(id) {
        Ok(Some(source)) => Ok(artifact_contents::opener(folder, id, &*source)?.is_ok()),
        Ok(None) => Ok(false),
        Err(error) => unreadable(error).map(|_| false),
    }
}

/// The ids that have files.
pub(crate) fn ids(folder: &Folder) -> Result<Vec<String>> {
    Ok(names(folder, &Profile::default())?.unlisted)
}

#[derive(Default)]
pub(crate) struct Names {
    pub(crate) unlisted: Vec<String>,
    foreign: Vec<Finding>,
}

pub(crate) fn names(folder: &Folder, profile: &Profile) -> Result<Names> {
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

/// The path of an artifact's contents in the conversation's folder.
pub(crate) fn place(id: &str) -> String {
    format!("{ARTIFACTS}/{id}")
}

fn place_bytes(name: &[u8]) -> Vec<u8> {
    [ARTIFACTS.as_bytes(), b"/", name].concat()
}

pub(crate) fn meta_name(id: &str) -> String {
    format!("{id}{META}")
}

/// What the metadata in the file of that name is bound to.
pub(crate) fn metadata_associated<'a>(scope: &'a [&'a str], name: &'a str) -> AssociatedData<'a> {
    AssociatedData::of(Kind::ArtifactMeta, scope, name)
}

pub(crate) fn open_meta(folder: &Folder, id: &str) -> Result<Result<Artifact, Finding>> {
    let name = meta_name(id);
    let found = |kind: FindingKind| Ok(Err(kind.in_file(place(&name))));
    let bytes = match folder.artifacts.read(&name) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return found(FindingKind::Absent),
        Err(error) => return found(unreadable(error)?),
    };
    match folder.unseal(&metadata_associated(&folder.scope.parts(), &name), &bytes)? {
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
            place: folder.directory.path().join(file).display().to_string(),
            reason: match finding.kind {
                FindingKind::Absent => "it is gone",
                FindingKind::Damaged(reason) => reason,
                _ => "its seal does not fit, or what is in it is no artifact",
            },
        }
    })
}
