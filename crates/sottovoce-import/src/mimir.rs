//! Reads folders of Mimir, an agent platform: a project's conversations with artifacts and snapshots.

mod artifact;
mod conversation;
mod line;
mod metadata;
mod small_file;
mod snapshot;

use std::io;
use std::path::PathBuf;

use sottovoce::admin::Progress;
use sottovoce::import::{ImportedConversations, Refusal};
use sottovoce::{Error, Result};

use crate::reader::{Reader, each};
use crate::source::{Folder, named};
use crate::system::MIMIR;

/// The folder of the conversations.
const CONVERSATIONS: &str = "conversations";

/// Reads the folder in which Mimir keeps the context of a project, `.mimir/context`:
/// `conversations/{id}/messages.jsonl` with `metadata.json`, `artifacts` and `snapshots` beside it. Links and lines
/// over 16 MiB are refused.
///
/// Each conversation becomes [`Scope::Named`](sottovoce::Scope::Named) with its id. Its messages keep their times and
/// the order of their lines. Title, tags, notes and costs become settings, unless the conversation already has its
/// own. Large data become artifacts, which are read while they are added. Their metadata `mimirId` is the id by which
/// messages refer to them. Saved states become snapshots.
#[derive(Debug)]
pub struct MimirFolder {
    path: PathBuf,
}

impl MimirFolder {
    /// The project's folder, or its `.mimir/context`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The folder that holds `conversations`.
    fn root(&self) -> Result<Folder> {
        let given = Folder::named(&self.path)?;
        let usual = given.inside(".mimir").inside("context");
        for folder in [given.clone(), usual, given.inside("context")] {
            if folder.has_folder(CONVERSATIONS)? {
                return Ok(folder);
            }
        }
        let absent = io::ErrorKind::NotFound.into();
        Err(Error::io("find `.mimir/context/conversations` in it", &self.path, absent))
    }
}

impl Reader for MimirFolder {
    type Output = ImportedConversations;

    fn read_blocking(self, progress: &dyn Fn(Progress)) -> Result<ImportedConversations> {
        let all = self.root()?.below(CONVERSATIONS);
        let mut found = ImportedConversations::new(MIMIR);
        let ids = all.folders(&mut found.refused, &mut found.passed_over)?;
        each(&ids, progress, |id| -> Result<()> {
            let scope = match named(id) {
                Ok(scope) => scope,
                Err(reason) => {
                    found.refused.push(Refusal::new(all.place(id), reason));
                    return Ok(());
                }
            };
            match conversation::read(&all.below(id), scope, id)? {
                Some(conversation) => found.conversations.push(conversation),
                None => found.passed_over.add("folders without a conversation", 1),
            }
            Ok(())
        })?;
        Ok(found.sorted())
    }
}
