//! Where repair puts what is no part of the conversation, instead of deleting it.

use crate::error::{Error, Result};
use crate::store::artifact::cabinet;
use crate::store::finding::{Finding, FindingKind};
use crate::store::folder::{Folder, unreadable};
use crate::store::pack;
use crate::store::snapshot::shelf;

/// The name of the folder, beside what lay there: one in the conversation's folder, and one in those of packs,
/// snapshots and artifacts.
pub(crate) const FOLDER: &str = "quarantine";

/// How much lies there.
pub(crate) fn verify(folder: &Folder) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let [packs, snapshots, artifacts] =
        [pack::FOLDER, shelf::FOLDER, cabinet::FOLDER].map(|name| format!("{name}/{FOLDER}"));
    let places = [
        (&folder.blobs, FOLDER),
        (&folder.packs, &packs),
        (&folder.snapshots, &snapshots),
        (&folder.artifacts, &artifacts),
    ];
    for (blobs, place) in places {
        let mut files = 0;
        match blobs.folder(FOLDER).list(&mut |_, _| files += 1) {
            Ok(()) if files == 0 => {}
            Ok(()) => findings.push(FindingKind::Quarantined { files }.in_file(place)),
            // What stands in the place of the folder around it is reported for itself.
            Err(Error::NotPlain { path, .. }) if !path.ends_with(FOLDER) => {}
            Err(error) => findings.push(unreadable(error)?.in_file(place)),
        }
    }
    Ok(findings)
}
