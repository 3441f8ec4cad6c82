//! Checks the catalog and the folders between conversations.

use std::path::Path;
use std::sync::Arc;

use crate::directory::fs::FsDirectory;
use crate::directory::{Directory, EntryKind, LOCK, TEMPORARY};
use crate::error::{Error, Result};
use crate::scope::{Scope, ScopeKind};
use crate::store::care::verify::verify;
use crate::store::file_store::blocking;
use crate::store::file_store::options::StoreOptions;
use crate::store::folder::conversation_folders::{
    ConversationFolder, conversation_folders, is_written,
};
use crate::store::folder::{Folder, HeadState};
use crate::store::read::reader::Reader;
use crate::store::record::finding::{Finding, FindingKind, Report};
use crate::store::record::layout::{CATALOG, REMOVED};
use crate::store::write::catalog::Catalog;

/// How often to check again if something seems wrong, because others may be writing.
const LOOKS: usize = 3;

impl StoreOptions {
    /// Checks the catalog of a store: that all listed conversations exist, that the folders between them have no
    /// foreign files, and that the catalog itself is valid. The findings' file names are paths below the folder. It
    /// does not check the conversations themselves.
    ///
    /// # Errors
    /// Only what prevents reading the folder.
    pub async fn verify_catalog(self, root: impl AsRef<Path>) -> Result<Report> {
        let root: Arc<dyn Directory> = Arc::new(FsDirectory::new(root.as_ref(), &[])?);
        blocking(move || self.check_catalog(&root)).await
    }

    /// Updates the catalog to the conversations that exist: removes missing ones and adds unlisted ones. Returns what
    /// was wrong.
    ///
    /// # Errors
    /// As [`verify_catalog`](Self::verify_catalog), and what prevents writing the catalog.
    pub async fn repair_catalog(self, root: impl AsRef<Path>) -> Result<Vec<Finding>> {
        let root: Arc<dyn Directory> = Arc::new(FsDirectory::new(root.as_ref(), &[])?);
        blocking(move || self.accept_catalog(&root)).await
    }

    pub(crate) fn check_catalog(&self, root: &Arc<dyn Directory>) -> Result<Report> {
        let catalog = self.catalog(root)?;
        let mut report = Report::default();
        if is_written(&*catalog.reader.folder.directory)? {
            report = verify(&catalog.reader.folder, &|_| {})?;
        }
        for finding in &mut report.findings {
            // The vault is in the root, not in the catalog's folder.
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

    fn accept_catalog(&self, root: &Arc<dyn Directory>) -> Result<Vec<Finding>> {
        let mut catalog = self.catalog(root)?;
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

    pub(super) fn catalog(&self, root: &Arc<dyn Directory>) -> Result<Catalog> {
        let options = self.clone().scope(Scope::Catalog);
        let (reader, writer) = options.assemble(Arc::clone(root), root.folder(CATALOG))?;
        Ok(Catalog { reader, writer })
    }

    /// Conversations that are listed but missing, or that were listed once but no longer are. The scope is given as
    /// text.
    fn compare_catalog(
        &self,
        root: &Arc<dyn Directory>,
        catalog: &Catalog,
    ) -> Result<Vec<(String, Finding)>> {
        let mut listed = catalog.entries()?;
        let mut wrong = Vec::new();
        for place in conversation_folders(root, &mut Vec::new())? {
            if place.scope == Scope::Catalog || !is_written(&*place.directory)? {
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

    /// A conversation's number in the catalog, according to its head.
    pub(super) fn listed_as(
        &self,
        root: &Arc<dyn Directory>,
        place: &ConversationFolder,
    ) -> Result<u64> {
        Ok(match self.reader_of(root, place)?.folder.head()?.1 {
            HeadState::Known(head) => head.listed(),
            HeadState::Absent | HeadState::Damaged => 0,
        })
    }

    pub(super) fn reader_of(
        &self,
        root: &Arc<dyn Directory>,
        place: &ConversationFolder,
    ) -> Result<Arc<Reader>> {
        let options = self.clone().scope(place.scope.clone());
        Ok(options.assemble(Arc::clone(root), Arc::clone(&place.directory))?.0)
    }
}

/// Foreign files between conversations.
fn strays(root: &Arc<dyn Directory>) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut written = false;
    for place in conversation_folders(root, &mut findings)? {
        if is_written(&*place.directory)? {
            written |= place.scope == Scope::Default;
            continue;
        }
        let mut is_empty = true;
        place.directory.list(&mut |name, _| {
            is_empty &= name == LOCK.as_bytes() || name.starts_with(TEMPORARY.as_bytes());
        })?;
        if !is_empty && place.scope != Scope::Default {
            findings.push(FindingKind::Foreign.in_file(place.below.trim_end_matches('/')));
        }
    }
    if !written {
        // The default conversation's own check would report them otherwise.
        let own = Folder::new(Arc::clone(root), Arc::clone(root), Scope::Default, Vec::new());
        findings.append(&mut own.list()?.foreign);
    }
    for kind in ScopeKind::ALL {
        between(&*root.folder(kind.folder()), kind.folder(), kind.levels(), &mut findings)?;
    }
    Ok(findings)
}

/// Foreign files in folders that should have only folders, `levels` deep.
fn between(
    directory: &dyn Directory,
    path: &str,
    levels: usize,
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let mut folders = Vec::new();
    let place = |name: &[u8]| [path.as_bytes(), b"/", name].concat();
    let listed = directory.list(&mut |name, kind| match (kind, str::from_utf8(name)) {
        (EntryKind::File, _) if name.starts_with(TEMPORARY.as_bytes()) => {
            findings.push(FindingKind::Leftover.in_file(place(name)));
        }
        (EntryKind::File, _) => findings.push(FindingKind::Foreign.in_file(place(name))),
        (EntryKind::Folder, Ok(REMOVED)) => {}
        (EntryKind::Folder, Ok(name)) if levels > 1 => folders.push(name.to_owned()),
        // These belong to conversations, or are reported with them.
        (EntryKind::Folder | EntryKind::Other, _) => {}
    });
    match listed {
        // Something else has the folder's name. That is reported with the conversations.
        Err(Error::NotPlain { .. }) => return Ok(()),
        listed => listed?,
    }
    for name in folders {
        between(&*directory.folder(&name), &format!("{path}/{name}"), levels - 1, findings)?;
    }
    // A removed conversation that is being deleted.
    let mut gone = Vec::new();
    directory
        .folder(REMOVED)
        .list(&mut |name, _| gone.push(place(&[REMOVED.as_bytes(), b"/", name].concat())))?;
    findings.extend(gone.into_iter().map(|place| FindingKind::Leftover.in_file(place)));
    Ok(())
}
