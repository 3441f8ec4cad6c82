//! Imports of this library's own exports. An empty conversation becomes exactly the exported one. Into any other,
//! messages are merged by their origins: none is doubled, none that was forgotten here comes back, and those that were
//! forgotten in the exported store are forgotten here too.

mod merge;
mod parse;
mod receive;
mod settings;

use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;

use crate::crypto::{EncryptionKey, HEADER, StreamOpener};
use crate::directory::fs::FsDirectory;
use crate::directory::{Directory, Source, SourceReader};
use crate::error::{Error, Result};
use crate::store::Progress;
use crate::store::file_store::CancelOnDrop;
use crate::store::folder::artifact_contents::Text;
use crate::store::folder::keyring::key_list;
use crate::transfer::export::sealed::BACKUP;
use crate::transfer::import::ConversationReport;
use receive::Receiver;

pub use receive::OpenStore;
pub(crate) use receive::put_artifact_back;

/// The most bytes of a sealed file's first line.
const LONGEST_LINE: usize = 4096;

/// A file that an [`Exporter`](crate::transfer::export::Exporter) has written, as JSON or sealed. It is opened read-only.
#[derive(Debug)]
#[must_use]
pub struct Backup {
    path: PathBuf,
    keys: Vec<Arc<EncryptionKey>>,
    with_limits: bool,
}

impl Backup {
    /// A backup at that path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), keys: Vec::new(), with_limits: false }
    }

    /// Adds a key that may open a sealed file. A passphrase costs some tenths of a second.
    pub fn key(mut self, key: impl Into<Arc<EncryptionKey>>) -> Self {
        self.keys.push(key.into());
        self
    }

    /// Applies the limits of the exported conversations here too: how much is kept, for how long, and how far back a
    /// rolling window reaches. Messages that are here and exceed them are hidden at once, and deleted with the next
    /// append. Without this, only a conversation that was never written to gets the limits.
    pub fn with_limits(mut self, with_limits: bool) -> Self {
        self.with_limits = with_limits;
        self
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether one of the keys opens the file, before anything is imported.
    ///
    /// # Errors
    /// Those of [`import`](Self::import).
    pub fn check(&self) -> Result<()> {
        self.open().map(drop)
    }

    /// Imports every conversation of the file into the store that `open` returns for its scope, calling `progress` for
    /// each record and `done` after each conversation.
    ///
    /// An empty conversation becomes the exported one, with its numbers; its prompts are the same to the byte. Into any
    /// other conversation, messages are added that it neither has nor had, and those that somebody forgot in the exported
    /// store are forgotten here too. Nothing else in it is deleted. Only messages that the export has too are hidden or
    /// cleared; its limits do not change; and it gets no persona of another conversation. The report lists what was left
    /// out.
    ///
    /// Import again to continue an import that was interrupted, or whose future was dropped.
    ///
    /// # Errors
    /// [`Error::NotImportable`] for a file that is no export or is cut off; the conversations before the cut are kept.
    /// [`Error::WrongKey`] if no key opens the file.
    pub async fn import(
        self,
        open: OpenStore,
        progress: impl Fn(Progress) + Send + 'static,
        done: impl FnMut(&ConversationReport) + Send + 'static,
    ) -> Result<Vec<ConversationReport>> {
        let stop = CancelOnDrop::default();
        let stopped = stop.flag();
        let reports = alone(move || {
            let text = self.open()?;
            let calls = (Box::new(progress) as _, Box::new(done) as _);
            let mut receiver = Receiver::new(open, stopped, calls, self.with_limits);
            parse::parse(BufReader::with_capacity(1 << 16, text), &self.path, &mut receiver)?;
            Ok(receiver.reports())
        })
        .await;
        drop(stop);
        reports
    }

    /// The file's text, decrypted if it is sealed.
    fn open(&self) -> Result<Box<dyn Read>> {
        let wrong = |reason| Error::NotImportable { path: self.path.clone(), reason };
        let failed = |error| Error::io("open the file", &self.path, error);
        let source = open_given(&self.path)?;
        let mut line = vec![0; LONGEST_LINE];
        let read = source.read_at(0, &mut line).map_err(failed)?;
        line.truncate(read);
        if !line.starts_with(br#"{"v":"#) {
            return Ok(Box::new(SourceReader::new(source)));
        }
        let end = line.iter().position(|byte| *byte == b'\n').map_or(line.len(), |end| end + 1);
        line.truncate(end);
        let entries = key_list::parse(&line, &self.path)?.entries;
        let [entry] = entries.as_slice() else {
            return Err(wrong("it is not a sealed export"));
        };
        let place = self.path.display().to_string();
        let found = entry.kid.clone();
        let bytes = entry.find(&self.keys)?.ok_or(Error::WrongKey { place, found })?;
        let source = Box::new(Behind { source, start: end as u64 });
        let mut header = [0; HEADER];
        source.read_at(0, &mut header).map_err(failed)?;
        let key = entry.sealing_key(&bytes);
        let opener = StreamOpener::new(&key, &BACKUP, &header, source.size());
        let opener = opener.ok_or_else(|| wrong("it is cut off"))?;
        Ok(Box::new(Text::new(source, opener)))
    }
}

/// Opens a plain file. Links on the way to it are followed, since people link their files.
fn open_given(path: &Path) -> Result<Box<dyn Source>> {
    let failed = |error| Error::io("open the file", path, error);
    let absent = || failed(io::ErrorKind::NotFound.into());
    let whole = path.canonicalize().map_err(failed)?;
    let name = whole.file_name().ok_or_else(absent)?.to_str().ok_or_else(|| {
        let reason = "its name is not UTF-8: rename it";
        failed(io::Error::new(io::ErrorKind::InvalidFilename, reason))
    })?;
    let folder = FsDirectory::new(whole.parent().ok_or_else(absent)?, &[])?;
    folder.open(name)?.ok_or_else(absent)
}

/// Runs work on a new thread. It waits for calls that need a blocking thread, and a runtime may have only one of these.
async fn alone<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let (done, waiting) = tokio::sync::oneshot::channel();
    let runtime = Handle::current();
    let spawned = std::thread::Builder::new().name("import".to_owned()).spawn(move || {
        let _entered = runtime.enter();
        let _ = done.send(work());
    });
    spawned.map_err(|error| Error::io("start a thread", "import", error))?;
    waiting.await.unwrap_or(Err(Error::ShuttingDown))
}

/// A source without its first bytes.
#[derive(Debug)]
struct Behind {
    source: Box<dyn Source>,
    start: u64,
}

impl Source for Behind {
    fn size(&self) -> u64 {
        self.source.size().saturating_sub(self.start)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.source.read_at(self.start + offset, into)
    }
}
