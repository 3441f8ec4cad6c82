//! Where chorus keeps its database, and the folders of its agents.

use std::path::Path;

use sottovoce::{Error, Result};

use crate::source::Folder;

/// The usual name of the database.
const FILE: &str = "chorus.db";
/// The usual name of its folder.
const FOLDER: &str = "db";

/// The files of an installation of chorus.
pub(super) struct Location {
    pub(super) database: Folder,
    pub(super) file: String,
    /// The folder of all agents' folders.
    pub(super) agents: Folder,
}

impl Location {
    /// Finds the files from the database, its folder, or the folder above that.
    pub(super) fn of(given: &Path) -> Result<Self> {
        let failed = |error| Error::io("open the database", given, error);
        // Links to the named folder are followed; links in it are not.
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

    /// The folder of an agent's sessions; `None` if the name is not one of a folder here.
    pub(super) fn sessions(&self, agent: &str) -> Option<Folder> {
        let leads_away =
            agent.is_empty() || agent.contains(['/', '\0']) || [".", ".."].contains(&agent);
        (!leads_away).then(|| self.agents.below(agent).below("sessions"))
    }
}
