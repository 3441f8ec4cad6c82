//! Lists the conversations below a root.

use std::path::Path;
use std::sync::Arc;

use crate::directory::fs::FsDirectory;
use crate::directory::{Directory, EntryKind};
use crate::error::Result;
use crate::scope::{Scope, ScopeKind};
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::layout::{CATALOG, HEAD, PACKS, REMOVED};
use crate::store::record::name::RecordName;

/// The scopes of all conversations below a root that were ever written to, in folder order. A root that does not
/// exist has none.
///
/// # Errors
/// What prevents listing a folder.
pub fn scopes(root: &Path) -> Result<Vec<Scope>> {
    let root: Arc<dyn Directory> = Arc::new(FsDirectory::new(root, &[])?);
    let mut scopes = Vec::new();
    for place in conversation_folders(&root, &mut Vec::new())? {
        if place.scope != Scope::Catalog && is_written(&*place.directory)? {
            scopes.push(place.scope);
        }
    }
    Ok(scopes)
}

/// The scopes with the bytes of their heads, which change with each write; `None` if a head cannot be read.
pub(crate) fn heads(root: &Path) -> Result<Vec<(Scope, Option<Vec<u8>>)>> {
    let root: Arc<dyn Directory> = Arc::new(FsDirectory::new(root, &[])?);
    let mut heads = Vec::new();
    for place in conversation_folders(&root, &mut Vec::new())? {
        // Opening the conversation reports what is wrong with it.
        let head = place.directory.read(HEAD).unwrap_or_default();
        if place.scope != Scope::Catalog && (head.is_some() || is_written(&*place.directory)?) {
            heads.push((place.scope, head));
        }
    }
    Ok(heads)
}

/// Whether a conversation in this folder was ever written to.
pub(crate) fn is_written(directory: &dyn Directory) -> Result<bool> {
    Ok(directory.link_count(HEAD)? > 0 || holds_records_itself(directory)?)
}

/// Whether the folder has records of its own but no head.
fn holds_records_itself(directory: &dyn Directory) -> Result<bool> {
    let mut holds = false;
    directory.list(&mut |name, _| {
        let name = str::from_utf8(name).ok();
        holds |= name.is_some_and(|name| name == PACKS || name.parse::<RecordName>().is_ok());
    })?;
    Ok(holds)
}

/// A conversation's folder.
#[derive(Debug, Clone)]
pub(crate) struct ConversationFolder {
    pub(crate) scope: Scope,
    pub(crate) directory: Arc<dyn Directory>,
    /// Its path below the root with a slash at the end, for findings. Empty for the root itself.
    pub(crate) below: String,
}

/// The folders whose names are those of conversations, whatever they contain. Adds to the findings what cannot be
/// listed.
pub(crate) fn conversation_folders(
    root: &Arc<dyn Directory>,
    findings: &mut Vec<Finding>,
) -> Result<Vec<ConversationFolder>> {
    let mut places = vec![ConversationFolder {
        scope: Scope::Default,
        directory: Arc::clone(root),
        below: String::new(),
    }];
    let mut foreign = Vec::new();
    let tops = folders(&**root, "", &mut foreign)?;
    // A link instead of a folder of conversations is a finding. Links beside those folders are not.
    let is_top =
        |name: &str| name == CATALOG || ScopeKind::ALL.iter().any(|kind| kind.folder() == name);
    findings.extend(foreign.into_iter().filter(|found| found.file.as_deref().is_some_and(is_top)));
    if tops.iter().any(|name| name == CATALOG) {
        let directory = root.folder(CATALOG);
        let below = format!("{}/", CATALOG);
        places.push(ConversationFolder { scope: Scope::Catalog, directory, below });
    }
    for kind in ScopeKind::ALL {
        let top = tops.iter().filter(|name| *name == kind.folder());
        let mut level: Vec<_> = top.map(|name| (vec![name.clone()], root.folder(name))).collect();
        for _ in 0..kind.levels() {
            let mut next = Vec::new();
            for (path, directory) in level {
                for name in folders(&*directory, &path.join("/"), findings)? {
                    let directory = directory.folder(&name);
                    next.push(([path.as_slice(), &[name]].concat(), directory));
                }
            }
            level = next;
        }
        for (path, directory) in level {
            let below = path.join("/");
            match kind.scope(path.get(1..).unwrap_or_default()) {
                Some(scope) => {
                    places.push(ConversationFolder { scope, directory, below: below + "/" })
                }
                None => findings.push(FindingKind::Foreign.in_file(below)),
            }
        }
    }
    Ok(places)
}

/// The folders in a folder, sorted by name.
fn folders(
    directory: &dyn Directory,
    path: &str,
    findings: &mut Vec<Finding>,
) -> Result<Vec<String>> {
    let mut folders = Vec::new();
    directory.list(&mut |name, kind| match (str::from_utf8(name), kind) {
        // This folder is being deleted and belongs to no conversation.
        (Ok(REMOVED), _) => {}
        (Ok(name), EntryKind::Folder) => folders.push(name.to_owned()),
        (_, EntryKind::File) => {}
        (_, EntryKind::Folder | EntryKind::Other) => {
            let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
            let place = [path.as_bytes(), slash, name].concat();
            findings.push(FindingKind::Foreign.in_file(place));
        }
    })?;
    folders.sort_unstable();
    Ok(folders)
}
