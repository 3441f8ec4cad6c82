//! Reads folders of Elara, a voice assistant in C#.

mod export;
mod key;
mod name;
mod record;

use std::path::PathBuf;

use sottovoce::Result;
use sottovoce::admin::{PLACEHOLDER_KEY, Progress};
use sottovoce::import::{ImportedMessage, ImportedMessages, Refusal};

use self::key::ElaraKey;
use crate::reader::{Reader, each};
use crate::source::{EntryKind, Folder, Refusable, misnamed};
use crate::system::ELARA;

pub use self::export::export_for_elara;

/// Reads a folder with one JSON file per message, as any version of Elara wrote it. The files may be sealed under
/// several keys, plain, or mixed.
#[derive(Debug)]
pub struct ElaraFolder {
    path: PathBuf,
    keys: Vec<ElaraKey>,
}

/// The sort key of messages: the time, the counter, the name.
type Order = (jiff::Timestamp, Option<u64>, String);

impl ElaraFolder {
    /// Reads a folder. The only key at first is the public one of Elara's sample configuration.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), keys: vec![ElaraKey::from_secret(PLACEHOLDER_KEY)] }
    }

    /// Adds a key string that files may be sealed under, exactly as it was configured.
    #[must_use]
    pub fn key(mut self, secret: &str) -> Self {
        self.keys.push(ElaraKey::from_secret(secret));
        self
    }

    /// Elara's default folder; `None` if the platform has no home folder.
    pub fn usual_path() -> Option<PathBuf> {
        let base = directories::BaseDirs::new()?;
        Some(base.cache_dir().join("ElaraAi").join("Conversation"))
    }

    /// `None` if the file was removed after the folder was listed.
    fn read_one(&self, folder: &Folder, file: &str) -> Refusable<Option<ImportedMessage>> {
        Ok(folder.read(file)?.and_then(|bytes| {
            let Some(bytes) = bytes else { return Ok(None) };
            let (message, form) = record::read(&bytes, &self.keys)?;
            ImportedMessage::new(ELARA, file, form, message).map(Some)
        }))
    }
}

impl Reader for ElaraFolder {
    type Output = ImportedMessages;

    fn read_blocking(self, progress: &dyn Fn(Progress)) -> Result<ImportedMessages> {
        let folder = Folder::named(&self.path)?;
        let mut messages = ImportedMessages::new(ELARA);
        let names = list(&folder, &mut messages)?;
        let mut found: Vec<(Order, ImportedMessage)> = Vec::with_capacity(names.len());
        each(&names, progress, |file| -> Result<()> {
            match self.read_one(&folder, file)? {
                // The file has been removed since: Elara may be running.
                Ok(None) => {}
                Ok(Some(message)) => {
                    let time = message.message.timestamp;
                    found.push(((time, name::counter(file), file.clone()), message));
                }
                Err(reason) => messages.refused.push(Refusal::new(file, reason)),
            }
            Ok(())
        })?;
        found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        messages.messages = found.into_iter().map(|(_, message)| message).collect();
        Ok(messages)
    }
}

/// The names of the records, sorted. Refuses entries with such names that are not plain files.
fn list(folder: &Folder, messages: &mut ImportedMessages) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for (name, kind) in folder.entries()? {
        match (kind, str::from_utf8(&name)) {
            _ if !name::is_record(&name) => messages.passed_over.add("entries of another kind", 1),
            (EntryKind::File, Ok(name)) => names.push(name.to_owned()),
            (kind, _) => messages.refused.push(folder.refusal(&name, misnamed(kind))),
        }
    }
    Ok(names)
}
