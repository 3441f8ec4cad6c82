//! Folders of Mimir, the agent platform: a project's conversations with their artifacts and snapshots.

mod artifact;
mod conversation;
mod line;
mod metadata;
mod small_file;
mod snapshot;

use std::io;
use std::path::{Path, PathBuf};

use sottovoce::import::{ImportedConversations, Refusal};
use sottovoce::{Error, Progress, Result};

use crate::source::{Folder, blocking, named};
use crate::system::MIMIR;

/// The folder that the conversations are in.
const CONVERSATIONS: &str = "conversations";

/// The folder in which Mimir keeps the context of a project, `.mimir/context`: `conversations/{id}/messages.jsonl` with
/// `metadata.json`, `artifacts` and `snapshots` beside it. It is only read.
///
/// Each conversation becomes [`Scope::Named`] with its id. Its messages keep Mimir's order, which is that of the lines,
/// and their times. Titles, tags, notes and costs become settings where these say nothing yet; large data become
/// artifacts, whose metadata `mimirId` says what messages call them there; saved states become snapshots.
#[derive(Debug)]
pub struct MimirFolder {
    path: PathBuf,
}

impl MimirFolder {
    /// The project's folder, or its `.mimir/context`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads every conversation, calling `progress` as it goes. All messages are in memory afterwards; artifacts are
    /// not, and are read when they are added. Lines over 16 MiB are refused, and links.
    ///
    /// # Errors
    /// Only what keeps the whole folder from being read, such as that there are no conversations; what concerns one
    /// conversation, file or line is a [`Refusal`].
    pub async fn read(
        self,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<ImportedConversations> {
        blocking(move || self.read_all(&progress)).await
    }

    fn read_all(&self, progress: &dyn Fn(Progress)) -> Result<ImportedConversations> {
        let all = self.root()?.below(CONVERSATIONS);
        let mut found = ImportedConversations::new(MIMIR);
        let ids = all.folders(&mut found.refused, &mut found.passed_over)?;
        for (done, id) in ids.iter().enumerate() {
            progress(Progress { done, total: ids.len() });
            let scope = match named(id) {
                Ok(scope) => scope,
                Err(reason) => {
                    found.refused.push(Refusal::new(all.place(id), reason));
                    continue;
                }
            };
            match conversation::read(&all.below(id), scope, id)? {
                Some(conversation) => found.conversations.push(conversation),
                None => found.passed_over.add("folders without a conversation", 1),
            }
        }
        progress(Progress { done: ids.len(), total: ids.len() });
        Ok(found.sorted())
    }

    /// The folder that holds the conversations' one.
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
