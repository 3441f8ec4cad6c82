//! Segments of the search index: sealed documents that are derived from the messages of a block of numbers.

use zeroize::Zeroizing;

use crate::crypto::Kind;
use crate::error::{Error, Result};
use crate::store::folder::document::refusal;
use crate::store::folder::sealed_files::SealedFiles;
use crate::store::folder::{Folder, unreadable};
use crate::store::record::document::block_seqs;
use crate::store::record::finding::{Finding, FindingKind, shown};
use crate::store::record::layout::RECALL;
use crate::store::record::seq_set::SeqSet;

pub(crate) const FILES: SealedFiles = SealedFiles {
    kind: Kind::Recall,
    folder: RECALL,
    directory: |folder| &folder.recall,
    is_id: |name| name.parse::<u64>().is_ok_and(|block| block.to_string() == name),
    ending: "",
    beside: None,
    no_value: "its seal does not fit",
};

/// The segment's plaintext; `None` if there is none.
///
/// # Errors
/// Those of [`document::read`](super::document::read).
pub(crate) fn read(folder: &Folder, block: u64) -> Result<Option<Zeroizing<Vec<u8>>>> {
    let name = block.to_string();
    let Some(bytes) = folder.recall.read(&name)? else { return Ok(None) };
    match folder.unseal(&FILES.associated(&folder.scope.parts(), &name), &bytes)? {
        Ok(plaintext) => Ok(Some(plaintext)),
        Err(kind) => Err(refusal(kind, folder.recall.path().join(name).display().to_string())),
    }
}

/// Removes the segments over any of these numbers, durably. Requires the lock, so that nobody writes one meanwhile.
pub(crate) fn remove(folder: &Folder, seqs: &SeqSet) -> Result<()> {
    let (blocks, _) = list(folder)?;
    let mut removed = false;
    for block in blocks.into_iter().filter(|block| seqs.intersects(&block_seqs(*block))) {
        folder.recall.remove(&block.to_string())?;
        removed = true;
    }
    if removed { folder.recall.sync() } else { Ok(()) }
}

/// The blocks that have a segment, and findings about other files.
pub(crate) fn list(folder: &Folder) -> Result<(Vec<u64>, Vec<Finding>)> {
    let (ids, foreign) = FILES.list(folder)?;
    let mut blocks: Vec<u64> = ids.iter().filter_map(|id| id.parse().ok()).collect();
    blocks.sort_unstable();
    Ok((blocks, foreign))
}

/// Findings about the segments.
pub(crate) fn verify(folder: &Folder) -> Result<Vec<Finding>> {
    let (blocks, mut findings) = match list(folder) {
        Ok(listed) => listed,
        Err(error) => return Ok(vec![unreadable(error)?.in_file(RECALL)]),
    };
    for block in blocks {
        let name = block.to_string();
        let kind = FILES.read(folder, &name)?.err().filter(|kind| *kind != FindingKind::Absent);
        findings.extend(kind.map(|kind| kind.in_file(FILES.place(&name))));
    }
    Ok(findings)
}

/// Fails if another key or a newer program may still read the segment.
pub(crate) fn check_replaceable(folder: &Folder, block: u64) -> Result<()> {
    match read(folder, block) {
        Ok(_) | Err(Error::Damaged { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether no key and no program can read a file among the segments.
pub(crate) fn is_useless(folder: &Folder, name: &[u8]) -> Result<bool> {
    let place = shown(&[RECALL.as_bytes(), b"/", name].concat());
    Ok(verify(folder)?.iter().any(|finding| {
        finding.file.as_ref() == Some(&place)
            && finding.kind != FindingKind::Leftover
            && !finding.kind.may_open_later()
    }))
}
