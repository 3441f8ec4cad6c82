//! The files of a conversation's artifacts: the contents in `{id}`, the metadata in `{id}.meta`.

use crate::crypto::Kind;
use crate::directory::LOCK;
use crate::error::Result;
use crate::store::folder::artifact_contents::{self, ArtifactContents};
use crate::store::folder::sealed_files::SealedFiles;
use crate::store::folder::{Folder, unreadable};
use crate::store::record::artifact::{Artifact, ArtifactKind, is_id};
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::layout::ARTIFACTS;
use crate::store::record::profile::Profile;

/// The files of metadata.
pub(crate) const FILES: SealedFiles = SealedFiles {
    kind: Kind::ArtifactMeta,
    folder: ARTIFACTS,
    directory: |folder| &folder.artifacts,
    is_id,
    ending: ".meta",
    beside: Some(LOCK),
    no_value: "its seal does not fit, or what is in it is no artifact",
};

/// Reads an artifact's metadata; `None` if there is no such artifact.
pub(crate) fn read(folder: &Folder, profile: &Profile, id: &str) -> Result<Option<Artifact>> {
    if profile.artifact(id).is_none() {
        return Ok(None);
    }
    let finding = match open_meta(folder, id)? {
        Ok(artifact) => return Ok(Some(artifact)),
        Err(finding) => finding,
    };
    Err(FILES.refusal(folder, &finding))
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
        Err(kind) => Err(FILES.refusal(folder, &kind.in_file(FILES.place(id)))),
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
        let place = FILES.place(&artifact.id);
        match artifact_contents::open(folder, artifact)? {
            Ok(contents) => findings.extend(contents.check()?.map(|kind| kind.in_file(place))),
            Err(kind) => findings.push(kind.in_file(place)),
        }
    }
    let (unlisted, mut foreign) = unlisted(folder, profile)?;
    for id in unlisted {
        let kind = match is_ours(folder, &id)? {
            true => FindingKind::Resurrected,
            false => FindingKind::Unopenable,
        };
        findings.push(kind.in_file(FILES.place(&id)));
    }
    findings.append(&mut foreign);
    Ok(findings)
}

/// Whether no key and no program can read this file.
pub(crate) fn is_useless(folder: &Folder, name: &[u8]) -> Result<bool> {
    let id = match FILES.id_of(name) {
        Ok(id) => id,
        Err(belongs) => return Ok(!belongs),
    };
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

/// The ids of files that the settings do not list, and findings about files that are none of an artifact.
pub(crate) fn unlisted(folder: &Folder, profile: &Profile) -> Result<(Vec<String>, Vec<Finding>)> {
    let (mut ids, foreign) = FILES.list(folder)?;
    ids.retain(|id| profile.artifact(id).is_none());
    Ok((ids, foreign))
}

pub(crate) fn open_meta(folder: &Folder, id: &str) -> Result<Result<Artifact, Finding>> {
    FILES.open(folder, id, |artifact: &Artifact| {
        (artifact.id != id).then_some(FindingKind::BadRecord)
    })
}
