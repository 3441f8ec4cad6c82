//! Folders of Elara, the C# voice assistant whose file names this store's grew from.

mod export;
mod key;
mod name;
mod record;

use std::path::{Path, PathBuf};

use sottovoce::import::{ImportedMessage, ImportedMessages, Refusal};
use sottovoce::{PLACEHOLDER_KEY, Progress, Result};

use self::key::ElaraKey;
use crate::source::{EntryKind, Folder, Refusable, blocking, misnamed};
use crate::system::ELARA;

pub use self::export::export_for_elara;

/// A folder of one JSON file a message, as any version of Elara wrote it: under several keys, under none, or all of
/// that mixed. It is only read.
#[derive(Debug)]
pub struct ElaraFolder {
    path: PathBuf,
    keys: Vec<ElaraKey>,
}

/// Where a message stands: by its time to 100 ns, the counter as a number, and the name.
type Order = (jiff::Timestamp, Option<u64>, String);

impl ElaraFolder {
    /// The folder, and as the only key the public one of Elara's sample configuration.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), keys: vec![ElaraKey::from_secret(PLACEHOLDER_KEY)] }
    }

    /// Another key string that records may be sealed under, exactly as it was configured.
    #[must_use]
    pub fn key(mut self, secret: &str) -> Self {
        self.keys.push(ElaraKey::from_secret(secret));
        self
    }

    /// Where Elara keeps its folder if it is not told otherwise; `None` where the platform names no home folder.
    pub fn usual_path() -> Option<PathBuf> {
        let base = directories::BaseDirs::new()?;
        Some(base.cache_dir().join("ElaraAi").join("Conversation"))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads every file whose name ends in `.json`, calling `progress` as it goes. All messages are in memory
    /// afterwards, in order.
    ///
    /// # Errors
    /// Only what keeps the whole folder from being read, such as that there is none; what concerns one file is a
    /// [`Refusal`].
    pub async fn read(
        self,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<ImportedMessages> {
        blocking(move || self.read_all(&progress)).await
    }

    fn read_all(&self, progress: &dyn Fn(Progress)) -> Result<ImportedMessages> {
        let folder = Folder::named(&self.path)?;
        let mut foreign = ImportedMessages::new(ELARA);
        let names = list(&folder, &mut foreign)?;
        let mut found: Vec<(Order, ImportedMessage)> = Vec::with_capacity(names.len());
        for (done, file) in names.iter().enumerate() {
            progress(Progress { done, total: names.len() });
            match self.read_one(&folder, file)? {
                // Elara may be running.
                Ok(None) => {}
                Ok(Some(message)) => {
                    let time = message.message.timestamp;
                    found.push(((time, name::counter(file), file.clone()), message));
                }
                Err(reason) => foreign.refused.push(Refusal::new(file, reason)),
            }
        }
        progress(Progress { done: names.len(), total: names.len() });
        found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        foreign.messages = found.into_iter().map(|(_, message)| message).collect();
        foreign.refused.sort_by(|a, b| a.file.cmp(&b.file));
        Ok(foreign)
    }

    /// `None` where the file has gone since the folder was listed.
    fn read_one(&self, folder: &Folder, file: &str) -> Refusable<Option<ImportedMessage>> {
        Ok(folder.read(file)?.and_then(|bytes| {
            let Some(bytes) = bytes else { return Ok(None) };
            let (message, form) = record::read(&bytes, &self.keys)?;
            ImportedMessage::new(ELARA, file, form, message).map(Some)
        }))
    }
}

/// The names of the records, sorted; what has such a name and cannot be one is refused.
fn list(folder: &Folder, foreign: &mut ImportedMessages) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for (name, kind) in folder.entries()? {
        match (kind, str::from_utf8(&name)) {
            _ if !name::is_record(&name) => foreign.passed_over.add("entries of another kind", 1),
            (EntryKind::File, Ok(name)) => names.push(name.to_owned()),
            (kind, _) => foreign.refused.push(folder.refusal(&name, misnamed(kind))),
        }
    }
    Ok(names)
}
