//! Checking what lies between the conversations of a root, and that none is gone.

use std::path::Path;
use std::sync::Arc;

use crate::blob::{Blobs, EntryKind, LOCK, TEMPORARY, fs::FsBlobs};
use crate::error::{Error, Result};
use crate::scope::{Scope, ScopeKind};
use crate::store::check::report::Report;
use crate::store::check::verify::verify;
use crate::store::file_store::blocking;
use crate::store::file_store::options::StoreOptions;
use crate::store::folder::scopes::{Place, is_written, places};
use crate::store::folder::{Folder, HeadState};
use crate::store::read::reader::Reader;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::layout::{CATALOG, REMOVED};
use crate::store::write::catalog::Catalog;

/// How often it is looked again where something seems to be wrong, since others may be at work.
const LOOKS: usize = 3;

impl StoreOptions {
    /// Checks the list of the conversations below a folder: that all of them are there, that nothing lies between them
    /// that is not the store's, and that the list itself is whole. The findings' files are paths below the folder; the
    /// conversations themselves are checked one by one.
    ///
    /// # Errors
    /// Only what keeps the folder from being read.
    pub async fn verify_catalog(self, root: impl AsRef<Path>) -> Result<Report> {
        let root: Arc<dyn Blobs> = Arc::new(FsBlobs::new(root.as_ref(), &[])?);
        blocking(move || self.check_catalog(&root)).await
    }

    /// Goes on with the conversations that are there: those that are gone are taken off the list, and those that are not
    /// on it are entered. What was wrong.
    ///
    /// # Errors
    /// As [`verify_catalog`](Self::verify_catalog), and what keeps the list from being written.
    pub async fn repair_catalog(self, root: impl AsRef<Path>) -> Result<Vec<Finding>> {
        let root: Arc<dyn Blobs> = Arc::new(FsBlobs::new(root.as_ref(), &[])?);
        blocking(move || self.accept_catalog(&root)).await
    }

    pub(crate) fn check_catalog(&self, root: &Arc<dyn Blobs>) -> Result<Report> {
        let catalog = self.catalog(root);
        let mut report = Report::default();
        if is_written(&*catalog.reader.folder.blobs)? {
            report = verify(&catalog.reader.folder, &|_| {})?;
        }
        for finding in &mut report.findings {
            // The vault is the root's.
            let is_own = finding.file.as_deref().is_none_or(|file| file != "vault");
            let file = finding.file.take();
            finding.file = match (is_own, file) {
                (true, file) => Some(format!("{CATALOG}/{}", file.unwrap_or_default())),
                (false, file) => file,
            };
        }
        report.findings.append(&mut strays(root)?);
        let mut wrong = self.compare_catalog(root, &catalog)?;
        for _ in 1..LOOKS {
            if wrong.is_empty() {
                break;
            }
            wrong = self.compare_catalog(root, &catalog)?;
        }
        report.findings.extend(wrong.into_iter().map(|(_, finding)| finding));
        Ok(report)
    }

    fn accept_catalog(&self, root: &Arc<dyn Blobs>) -> Result<Vec<Finding>> {
        let mut catalog = self.catalog(root);
        let wrong = self.compare_catalog(root, &catalog)?;
        for (scope, finding) in &wrong {
            match (&finding.kind, scope.parse()) {
                (FindingKind::Unlisted, Ok(scope)) => drop(catalog.enter(&scope, false)?),
                (FindingKind::Absent, _) => catalog.leave(scope)?,
                _ => {}
            }
        }
        Ok(wrong.into_iter().map(|(_, finding)| finding).collect())
    }

    pub(super) fn catalog(&self, root: &Arc<dyn Blobs>) -> Catalog {
        let (reader, writer) =
            self.clone().scope(Scope::Catalog).assemble(Arc::clone(root), root.folder(CATALOG));
        Catalog { reader, writer }
    }

    /// The conversations that are on the list and gone, or not on it though they were entered, as text.
    fn compare_catalog(
        &self,
        root: &Arc<dyn Blobs>,
        catalog: &Catalog,
    ) -> Result<Vec<(String, Finding)>> {
        let mut listed = catalog.entries()?;
        let mut wrong = Vec::new();
        for place in places(root, &mut Vec::new())? {
            if place.scope == Scope::Catalog || !is_written(&*place.blobs)? {
                continue;
            }
            let text = place.scope.to_string();
            if listed.remove(&text).is_none() && self.listed_as(root, &place)? != 0 {
                wrong
                    .push((text, FindingKind::Unlisted.in_file(place.below.trim_end_matches('/'))));
            }
        }
        for text in listed.into_keys() {
            let folder = text.parse::<Scope>().ok().and_then(|scope| scope.folder().ok());
            let folder = folder.map_or_else(|| text.clone(), |levels| levels.join("/"));
            let kind = FindingKind::Absent;
            wrong.push((text, Finding { kind, file: Some(folder), seqs: None }));
        }
        Ok(wrong)
    }

    /// The number under which a conversation's head says that it is on the list.
    pub(super) fn listed_as(&self, root: &Arc<dyn Blobs>, place: &Place) -> Result<u64> {
        Ok(match self.reader_of(root, place).folder.head()?.1 {
            HeadState::Known(head) => head.listed(),
            HeadState::Absent | HeadState::Damaged => 0,
        })
    }

    pub(super) fn reader_of(&self, root: &Arc<dyn Blobs>, place: &Place) -> Arc<Reader> {
        let options = self.clone().scope(place.scope.clone());
        options.assemble(Arc::clone(root), Arc::clone(&place.blobs)).0
    }
}

/// What lies between conversations and is not the store's.
fn strays(root: &Arc<dyn Blobs>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut written = false;
    for place in places(root, &mut findings)? {
        if is_written(&*place.blobs)? {
            written |= place.scope == Scope::Default;
            continue;
        }
        let mut is_empty = true;
        place.blobs.list(&mut |name, _| {
            is_empty &= name == LOCK.as_bytes() || name.starts_with(TEMPORARY.as_bytes());
        })?;
        if !is_empty && place.scope != Scope::Default {
            findings.push(FindingKind::Foreign.in_file(place.below.trim_end_matches('/')));
        }
    }
    if !written {
        // Whose check would name them otherwise.
        let own = Folder::new(Arc::clone(root), Arc::clone(root), Scope::Default, Vec::new());
        findings.append(&mut own.list()?.foreign);
    }
    for kind in ScopeKind::ALL {
        between(&*root.folder(kind.folder()), kind.folder(), kind.levels(), &mut findings)?;
    }
    Ok(findings)
}

/// The files in folders that hold only folders, so many levels of them.
fn between(
    blobs: &dyn Blobs,
    path: &str,
    levels: usize,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let mut folders = Vec::new();
    let place = |name: &[u8]| [path.as_bytes(), b"/", name].concat();
    let listed = blobs.list(&mut |name, kind| match (kind, str::from_utf8(name)) {
        (EntryKind::File, _) if name.starts_with(TEMPORARY.as_bytes()) => {
            findings.push(FindingKind::Leftover.in_file(place(name)));
        }
        (EntryKind::File, _) => findings.push(FindingKind::Foreign.in_file(place(name))),
        (EntryKind::Folder, Ok(REMOVED)) => {}
        (EntryKind::Folder, Ok(name)) if levels > 1 => folders.push(name.to_owned()),
        // The conversations' own, and what is named with the conversations.
        (EntryKind::Folder | EntryKind::Other, _) => {}
    });
    match listed {
        // What stands in the place of the folder is named with the conversations.
        Err(Error::NotPlain { .. }) => return Ok(()),
        listed => listed?,
    }
    for name in folders {
        between(&*blobs.folder(&name), &format!("{path}/{name}"), levels - 1, findings)?;
    }
    // What is being deleted: its own, if it was taken off the list.
    let mut gone = Vec::new();
    blobs
        .folder(REMOVED)
        .list(&mut |name, _| gone.push(place(&[REMOVED.as_bytes(), b"/", name].concat())))?;
    findings.extend(gone.into_iter().map(|place| FindingKind::Leftover.in_file(place)));
    Ok(())
}
