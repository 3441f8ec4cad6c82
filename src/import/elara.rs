//! Folders of Elara, the C# voice assistant whose file names this store's grew from.

mod name;
mod record;

use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::blob::{Blobs, EntryKind, fs::FsBlobs};
use crate::crypto::{ForeignKey, PLACEHOLDER_KEY};
use crate::error::{Error, Result};
use crate::import::{Foreign, ForeignMessage, Refusal, RefusalReason};
use crate::store::Progress;
use crate::store::file_store::blocking;

/// How reports and records name the system.
const SYSTEM: &str = "elara";

/// A folder of one JSON file a message, as any version of Elara wrote it: under several keys, under none, or all of
/// that mixed. It is only read.
#[derive(Debug)]
pub struct ElaraFolder {
    path: PathBuf,
    keys: Vec<ForeignKey>,
}

/// Where a message stands: by its time to 100 ns, the counter as a number, and the name.
type Order = (jiff::Timestamp, Option<u64>, String);

impl ElaraFolder {
    /// The folder, and as the only key the public one of Elara's sample configuration.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), keys: vec![ForeignKey::from_secret(PLACEHOLDER_KEY)] }
    }

    /// Another key string that records may be sealed under, exactly as it was configured.
    #[must_use]
    pub fn key(mut self, secret: &str) -> Self {
        self.keys.push(ForeignKey::from_secret(secret));
        self
    }

    /// Where Elara keeps its folder if it is not told otherwise; `None` where the platform names no home folder.
    #[cfg(feature = "config")]
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
    pub async fn read(self, progress: impl Fn(Progress) + Send + 'static) -> Result<Foreign> {
        blocking(move || self.read_all(&progress)).await
    }

    fn read_all(&self, progress: &dyn Fn(Progress)) -> Result<Foreign> {
        // People link their folders elsewhere; what is in them is not followed.
        let path = self.path.canonicalize();
        let path = path.map_err(|error| Error::io("open the folder", &self.path, error))?;
        let folder = FsBlobs::new(&path, &[])?;
        let mut foreign = Foreign::new(SYSTEM);
        let names = list(&folder, &mut foreign)?;
        let mut found: Vec<(Order, ForeignMessage)> = Vec::with_capacity(names.len());
        for (done, file) in names.iter().enumerate() {
            progress(Progress { done, total: names.len() });
            match self.read_one(&folder, file)? {
                // Elara may be running.
                None => {}
                Some(Ok(message)) => {
                    let time = message.message.timestamp;
                    found.push(((time, name::counter(file), file.clone()), message));
                }
                Some(Err(reason)) => foreign.refused.push(Refusal::new(file, reason)),
            }
        }
        progress(Progress { done: names.len(), total: names.len() });
        found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        foreign.messages = found.into_iter().map(|(_, message)| message).collect();
        foreign.refused.sort_by(|a, b| a.file.cmp(&b.file));
        Ok(foreign)
    }

    /// `None` where the file has gone since the folder was listed.
    fn read_one(
        &self,
        folder: &FsBlobs,
        file: &str,
    ) -> Result<Option<Result<ForeignMessage, RefusalReason>>> {
        let bytes = match folder.read(file) {
            Ok(None) => return Ok(None),
            Ok(Some(bytes)) => Zeroizing::new(bytes),
            Err(error) => return RefusalReason::unread(error).map(|reason| Some(Err(reason))),
        };
        let read = record::read(&bytes, &self.keys);
        Ok(Some(read.and_then(|(message, form)| ForeignMessage::new(SYSTEM, file, form, message))))
    }
}

/// The names of the records, sorted; what has such a name and cannot be one is refused.
fn list(folder: &FsBlobs, foreign: &mut Foreign) -> Result<Vec<String>> {
    let mut names = Vec::new();
    folder.list(&mut |name, kind| {
        if !name::is_record(name) {
            foreign.passed_over.add("entries of another kind", 1);
            return;
        }
        let refused = match (kind, str::from_utf8(name)) {
            (EntryKind::Folder, _) => RefusalReason::NotPlain("a folder"),
            (EntryKind::Other, _) => RefusalReason::NotPlain("a link, pipe or device"),
            (EntryKind::File, Err(_)) => RefusalReason::Corrupt("its name is not text"),
            (EntryKind::File, Ok(name)) => return names.push(name.to_owned()),
        };
        foreign.refused.push(Refusal::new(name, refused));
    })?;
    names.sort_unstable();
    Ok(names)
}
