//! Where chorus keeps what: its database, and the folders of its agents.

use std::path::Path;
use std::sync::Arc;

use crate::blob::{Blobs, EntryKind, fs::FsBlobs};
use crate::error::{Error, Result};
use crate::import::given;

/// The database within its folder, unless it is named.
const FILE: &str = "chorus.db";
/// That folder.
const FOLDER: &str = "db";

/// The places of one chorus.
pub(super) struct Place {
    pub(super) database: FsBlobs,
    pub(super) file: String,
    pub(super) agents: Arc<dyn Blobs>,
}

impl Place {
    /// Of the database itself, of its folder, or of the folder that holds that one.
    pub(super) fn of(given: &Path) -> Result<Self> {
        let failed = |error| Error::io("open the database", given, error);
        // People link their folders elsewhere; what is in them is not followed.
        let path = given.canonicalize().map_err(failed)?;
        let (folder, file) = if !path.is_dir() {
            let (folder, name) = given::place(&path)?;
            (folder.path().to_owned(), name)
        } else if path.join(FILE).is_file() {
            (path, FILE.to_owned())
        } else {
            (path.join(FOLDER), FILE.to_owned())
        };
        let is_usual = folder.file_name().is_some_and(|name| name == FOLDER);
        let root = folder.parent().filter(|_| is_usual).unwrap_or(&folder);
        let agents = FsBlobs::new(root, &[])?.folder("agents");
        Ok(Self { database: FsBlobs::new(&folder, &[])?, file, agents })
    }

    /// The folder of an agent's sessions; `None` for a name that leads elsewhere.
    pub(super) fn sessions(&self, agent: &str) -> Option<Arc<dyn Blobs>> {
        let leads_away =
            agent.is_empty() || agent.contains(['/', '\0']) || [".", ".."].contains(&agent);
        (!leads_away).then(|| self.agents.folder(agent).folder("sessions"))
    }

    /// How many files of agents are no sessions that the database knows. What cannot be looked into counts as one.
    pub(super) fn others(&self, is_known: &dyn Fn(&str, &[u8]) -> bool) -> usize {
        let mut others = 0;
        for (agent, kind) in list(&*self.agents, &mut others) {
            let (EntryKind::Folder, Ok(agent)) = (kind, String::from_utf8(agent)) else {
                others += 1;
                continue;
            };
            let folder = self.agents.folder(&agent);
            for (name, kind) in list(&*folder, &mut others) {
                match (kind, name.as_slice()) {
                    (EntryKind::Folder, b"docs") => {
                        others += list(&*folder.folder("docs"), &mut 0).len();
                    }
                    (EntryKind::Folder, b"sessions") => {
                        let files = list(&*folder.folder("sessions"), &mut others);
                        others += files.iter().filter(|(name, _)| !is_known(&agent, name)).count();
                    }
                    _ => others += 1,
                }
            }
        }
        others
    }
}

fn list(folder: &dyn Blobs, others: &mut usize) -> Vec<(Vec<u8>, EntryKind)> {
    let mut entries = Vec::new();
    if folder.list(&mut |name, kind| entries.push((name.to_vec(), kind))).is_err() {
        *others += 1;
    }
    entries
}
