//! The quarantine folder: repair moves foreign and damaged files here instead of deleting them.

use crate::error::{Error, Result};
use crate::store::folder::{Folder, unreadable};
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::layout::{ARTIFACTS, PACKS, QUARANTINE, RECALL, SNAPSHOTS};

/// Findings about how many files are quarantined.
pub(crate) fn verify(folder: &Folder) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let [packs, snapshots, artifacts, recall] =
        [PACKS, SNAPSHOTS, ARTIFACTS, RECALL].map(|name| format!("{name}/{QUARANTINE}"));
    let places = [
        (&folder.directory, QUARANTINE),
        (&folder.packs, &packs),
        (&folder.snapshots, &snapshots),
        (&folder.artifacts, &artifacts),
        (&folder.recall, &recall),
    ];
    for (directory, place) in places {
        let mut files = 0;
        match directory.folder(QUARANTINE).list(&mut |_, _| files += 1) {
            Ok(()) if files == 0 => {}
            Ok(()) => findings.push(FindingKind::Quarantined { files }.in_file(place)),
            // If the surrounding folder cannot be read, that is reported separately.
            Err(Error::NotPlain { path, .. }) if !path.ends_with(QUARANTINE) => {}
            Err(error) => findings.push(unreadable(error)?.in_file(place)),
        }
    }
    Ok(findings)
}
