//! Inventories: what a conversation held at some time. Kept outside the store, an inventory shows if an older copy of
//! the whole folder was put back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::store::folder::artifact_contents::hex;
use crate::store::folder::{ATTEMPTS, Folder, Opened, unstable_folder};
use crate::store::read::reverse_scan::{NextRecord, ReverseScan};
use crate::store::read::tail::Tail;
use crate::store::record::encoding::{object, to_json};
use crate::store::record::finding::{Finding, FindingKind, Progress};
use crate::store::record::name::RecordName;
use crate::store::record::seq_set::SeqSet;

/// How many numbers share a digest. Once one of them is forgotten, the contents of the others can no longer be
/// compared.
const BLOCK: u64 = 1024;

/// What a conversation held: numbers, and digests of sealed files. It contains no words. It proves nothing to anyone
/// who could have changed it, so keep it where nobody who can replace the store can write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    v: u64,
    /// The id of the key that sealed at that time; empty if the vault was missing.
    kid: String,
    pub(crate) scope: Vec<String>,
    /// The highest number assigned.
    last: u64,
    forgotten: Vec<(u64, u64)>,
    missing: Vec<(u64, u64)>,
    blocks: Vec<Block>,
}

/// The records with numbers from `first` on, at most [`BLOCK`] of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    first: u64,
    /// SHA-256 of the records' lines as a pack would have them, newest first, in lower-case hexadecimal digits.
    sha256: String,
}

/// What a folder holds now, as far as an inventory covers it.
struct Count {
    last: u64,
    erased: SeqSet,
    present: SeqSet,
    digests: BTreeMap<u64, String>,
}

fn set(ranges: &[(u64, u64)]) -> SeqSet {
    ranges.iter().map(|&(first, last)| first..=last).collect()
}

fn up_to(last: u64) -> SeqSet {
    set(&[(1, last)])
}

fn pairs(set: &SeqSet) -> Vec<(u64, u64)> {
    set.ranges().map(|range| range.into_inner()).collect()
}

fn first_of_block(seq: u64) -> u64 {
    seq.saturating_sub(1) / BLOCK * BLOCK + 1
}

impl Inventory {
    /// Parses an inventory from [`to_json`](Self::to_json). `place` names it in errors.
    ///
    /// # Errors
    /// [`Error::Damaged`] or [`Error::NewerFormat`].
    pub fn from_json(json: &[u8], place: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Version {
            v: u64,
        }
        let damaged = || Error::Damaged { place: place.into(), reason: "it is no inventory" };
        let Version { v } = object(json).ok_or_else(damaged)?;
        if v > 1 {
            return Err(Error::NewerFormat { place: place.into(), version: v });
        }
        if v == 0 {
            return Err(damaged());
        }
        object(json).ok_or_else(damaged)
    }

    /// Formats the inventory as one line of JSON. Equal inventories give equal lines.
    ///
    /// # Errors
    /// None is expected: every inventory has a JSON form.
    pub fn to_json(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&to_json(self)?).into_owned() + "\n")
    }

    /// The highest number assigned at that time.
    pub fn last_seq(&self) -> u64 {
        self.last
    }

    /// The numbers that were stored.
    fn present(&self) -> SeqSet {
        up_to(self.last).without(&set(&self.forgotten)).without(&set(&self.missing))
    }
}

/// Takes an inventory of the folder.
pub(crate) fn take(folder: &Folder, progress: &dyn Fn(Progress)) -> Result<Inventory> {
    let count = count(folder, None, progress)?;
    let missing = up_to(count.last).without(&count.erased).without(&count.present);
    Ok(Inventory {
        v: 1,
        kid: key_id(folder)?,
        scope: scope(folder),
        last: count.last,
        forgotten: pairs(&count.erased),
        missing: pairs(&missing),
        blocks: count.digests.into_iter().map(|(first, sha256)| Block { first, sha256 }).collect(),
    })
}

/// Findings about what the folder has lost since the earlier inventory.
pub(crate) fn compare(
    folder: &Folder,
    earlier: &Inventory,
    progress: &dyn Fn(Progress),
) -> Result<Vec<Finding>> {
    if earlier.scope != scope(folder) {
        return Err(Error::OtherScope);
    }
    let now = count(folder, Some(earlier), progress)?;
    let mut findings = Vec::new();
    let mut find = |kind: FindingKind, set: &SeqSet| {
        findings.extend(set.ranges().map(|range| kind.clone().at(*range.start(), *range.end())));
    };
    let lacking = up_to(earlier.last).without(&up_to(now.last));
    find(FindingKind::RolledBack, &lacking);
    let unforgotten = set(&earlier.forgotten).without(&now.erased);
    find(FindingKind::TombstoneLost, &unforgotten.without(&lacking));
    let vanished = earlier.present().without(&now.present).without(&now.erased);
    find(FindingKind::Vanished, &vanished.without(&lacking));

    if earlier.kid != key_id(folder)? {
        findings.push(Finding { kind: FindingKind::NotCompared, file: None, seqs: None });
        return Ok(findings);
    }
    // Numbers that were forgotten or lost are in no digest any more.
    let gone = earlier.present().without(&now.present);
    for block in &earlier.blocks {
        let last = block.first.saturating_add(BLOCK - 1).min(earlier.last);
        let is_equal = now.digests.get(&block.first) == Some(&block.sha256);
        if !is_equal && !gone.intersects(&(block.first..=last)) {
            findings.push(FindingKind::Replaced.at(block.first, last));
        }
    }
    Ok(findings)
}

fn key_id(folder: &Folder) -> Result<String> {
    let writer = folder.vault()?.map(|vault| vault.writer());
    Ok(writer.map(|key| key.id().to_owned()).unwrap_or_default())
}

fn scope(folder: &Folder) -> Vec<String> {
    folder.scope.parts().into_iter().map(str::to_owned).collect()
}

/// Reads the folder. Starts again if files are moved meanwhile.
fn count(
    folder: &Folder,
    earlier: Option<&Inventory>,
    progress: &dyn Fn(Progress),
) -> Result<Count> {
    for _ in 0..ATTEMPTS {
        let tail = Tail::load(folder, 0, None)?;
        if let Some(count) = count_once(folder, &tail, earlier, progress)? {
            return Ok(count);
        }
    }
    let alone = || {
        let tail = Tail::load_alone(folder, 0, None)?;
        count_once(folder, &tail, earlier, progress)
    };
    folder.settled(alone)?.flatten().ok_or_else(|| unstable_folder(folder))
}

/// One attempt; `None` if a file vanished after it was listed.
fn count_once(
    folder: &Folder,
    tail: &Tail,
    earlier: Option<&Inventory>,
    progress: &dyn Fn(Progress),
) -> Result<Option<Count>> {
    // With an earlier inventory, only its numbers matter.
    let until = earlier.map_or(tail.last_seq, |earlier| earlier.last);
    let unknown = earlier.map(|earlier| set(&earlier.missing)).unwrap_or_default();
    let mut present = Vec::new();
    let mut digests: BTreeMap<u64, Sha256> = BTreeMap::new();
    let listing = folder.list()?;
    // A writer that forgets messages changes the head before it removes files.
    if folder.head_bytes()? != tail.head_bytes {
        return Ok(None);
    }
    let packed = listing.packs.iter().fold(0, |sum: u64, pack| sum.saturating_add(pack.count));
    let total = listing.names.len().saturating_add(usize::try_from(packed).unwrap_or(0));
    let mut done = 0;
    let mut counted: Option<RecordName> = None;
    let mut newest = ReverseScan::new(listing.names, &listing.packs);
    loop {
        let (name, line) = match newest.next(folder)? {
            NextRecord::Vanished => return Ok(None),
            NextRecord::End => break,
            NextRecord::Loose(name) => (name, None),
            NextRecord::Packed(_, name, line) => (name, Some(line)),
        };
        progress(Progress { done, total: total.max(done) });
        done += 1;
        // One readable copy is enough.
        if name.seq > until || tail.erased.contains(name.seq) || counted == Some(name) {
            continue;
        }
        let read;
        let bytes = match &line {
            Some(line) => line.file(),
            None => match folder.directory.read(&name.to_string()) {
                Ok(Some(bytes)) => {
                    read = bytes;
                    &read
                }
                Ok(None) => return Ok(None),
                // A file that cannot be read counts as missing.
                Err(Error::NotPlain { .. } | Error::Io { .. }) => continue,
                Err(error) => return Err(error),
            },
        };
        if !matches!(folder.open_bytes(name, bytes)?, Opened::Message(_) | Opened::Forget(_)) {
            continue;
        }
        counted = Some(name);
        present.push((name.seq, name.seq));
        if !unknown.contains(name.seq) {
            let digest = digests.entry(first_of_block(name.seq)).or_default();
            digest.update(name.to_string());
            digest.update(b"\t");
            digest.update(bytes);
        }
    }
    progress(Progress { done, total: done });
    let digests = digests.into_iter().map(|(first, digest)| (first, hex(&digest.finalize())));
    Ok(Some(Count {
        last: tail.last_seq,
        erased: tail.erased.clone(),
        present: set(&present),
        digests: digests.collect(),
    }))
}
