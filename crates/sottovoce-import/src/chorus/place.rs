//! Where chorus keeps what: its database, and the folders of its agents.

use std::path::Path;

use sottovoce::{Error, Result};

use crate::source::Folder;

/// The database within its folder, unless it is named.
const FILE: &str = "chorus.db";
/// That folder.
const FOLDER: &str = "db";

/// The places of one chorus.
pub(super) struct Place {
    pub(super) database: Folder,
    pub(super) file: String,
    /// The folder that those of all agents are in.
    pub(super) agents: Folder,
}

impl Place {
    /// Of the database itself, of its folder, or of the folder that holds that one.
    pub(super) fn of(given: &Path) -> Result<Self> {
        let failed = |error| Error::io("open the database", given, error);
        // People link their folders elsewhere; what is in them is not followed.
        let path = given.canonicalize().map_err(failed)?;
        let (folder, file) = if !path.is_dir() {
            let (folder, name) = Folder::of_file(&path)?;
            (folder.path().to_owned(), name)
        } else if path.join(FILE).is_file() {
            (path, FILE.to_owned())
        } else {
            (path.join(FOLDER), FILE.to_owned())
        };
        let is_usual = folder.file_name().is_some_and(|name| name == FOLDER);
        let root = folder.parent().filter(|_| is_usual).unwrap_or(&folder);
        let agents = Folder::named(root)?.below("agents");
        Ok(Self { database: Folder::named(&folder)?, file, agents })
    }

    /// The folder of an agent's sessions; `None` for a name that leads elsewhere.
    pub(super) fn sessions(&self, agent: &str) -> Option<Folder> {
        let leads_away =
            agent.is_empty() || agent.contains(['/', '\0']) || [".", ".."].contains(&agent);
        (!leads_away).then(|| self.agents.below(agent).below("sessions"))
    }
}
