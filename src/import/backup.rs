//! Taking back what an export has written: into an empty conversation exactly as it was, into any other without doubling
//! anything or bringing back what was forgotten.

mod artifacts;
mod merge;
mod parse;
mod receive;
mod settings;

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::blob::{Source, SourceReader};
use crate::crypto::{EncryptionKey, HEADER, StreamOpener};
use crate::error::{Error, Result};
use crate::export::sealed::PLACE;
use crate::import::{ConversationReport, given};
use crate::store::Progress;
use crate::store::artifact::contents::Text;
use crate::store::file_store::CancelOnDrop;
use crate::store::keyring::line;
use receive::Receiver;

pub use receive::OpenStore;

/// The longest first line of a sealed file.
const LONGEST_LINE: usize = 4096;

/// A file that an [`Exporter`](crate::Exporter) has written, as JSON or sealed. It is only read.
#[derive(Debug)]
pub struct Backup {
    path: PathBuf,
    keys: Vec<Arc<EncryptionKey>>,
    with_limits: bool,
}

impl Backup {
    /// The file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), keys: Vec::new(), with_limits: false }
    }

    /// A key that the file may be sealed under; a passphrase costs some tenths of a second.
    #[must_use]
    pub fn key(mut self, key: impl Into<Arc<EncryptionKey>>) -> Self {
        self.keys.push(key.into());
        self
    }

    /// Sets the limits of the export's conversations here too: how much is kept, for how long, and how far back a rolling
    /// window reaches. They may hide messages that are here, which are then removed with the next one. Otherwise only a
    /// conversation that was never written to gets them.
    #[must_use]
    pub fn with_limits(mut self, with_limits: bool) -> Self {
        self.with_limits = with_limits;
        self
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts every conversation of the file into the store that `open` gives for its scope, calling `progress` as records
    /// go in and `done` after each conversation. Into an empty one everything is put back as it was, to the number: its
    /// prompts are those of before, to the byte. Into any other, what is not there yet is added, and nothing that was
    /// forgotten there since: nothing is removed, hidden or cleared there that the export does not hold itself, no limit
    /// changes, and no persona comes into another conversation. The report says what was left out for that reason. An import that was interrupted, or whose future was dropped, is gone on with by importing
    /// again.
    ///
    /// # Errors
    /// [`Error::NotImportable`] for a file that is none, or ends in the middle; what came before is kept. [`Error::WrongKey`]
    /// where no key opens it.
    pub async fn import(
        self,
        open: OpenStore,
        progress: impl Fn(Progress) + Send + 'static,
        done: impl FnMut(&ConversationReport) + Send + 'static,
    ) -> Result<Vec<ConversationReport>> {
        let handle = tokio::runtime::Handle::current();
        let stop = CancelOnDrop::default();
        let stopped = stop.flag();
        let reports = alone(move || {
            let text = self.open()?;
            let calls = (Box::new(progress) as _, Box::new(done) as _);
            let mut receiver = Receiver::new(handle, open, stopped, calls, self.with_limits);
            parse::parse(BufReader::with_capacity(1 << 16, text), &self.path, &mut receiver)?;
            Ok(receiver.reports())
        })
        .await;
        drop(stop);
        reports
    }

    /// What the file says, opened if it is sealed.
    fn open(&self) -> Result<Box<dyn Read>> {
        let wrong = |reason| Error::NotImportable { path: self.path.clone(), reason };
        let failed = |error| Error::io("open the file", &self.path, error);
        let source = given::open(&self.path)?;
        let mut line = vec![0; LONGEST_LINE];
        let read = source.read_at(0, &mut line).map_err(failed)?;
        line.truncate(read);
        if !line.starts_with(br#"{"v":"#) {
            return Ok(Box::new(SourceReader::new(source)));
        }
        let end = line.iter().position(|byte| *byte == b'\n').map_or(line.len(), |end| end + 1);
        line.truncate(end);
        let entries = line::parse(&line, &self.path)?.entries;
        let [entry] = entries.as_slice() else {
            return Err(wrong("it is no sealed export"));
        };
        let place = self.path.display().to_string();
        let found = entry.kid.clone();
        let bytes = entry.find(&self.keys)?.ok_or(Error::WrongKey { place, found })?;
        let source = Box::new(Behind { source, start: end as u64 });
        let mut header = [0; HEADER];
        source.read_at(0, &mut header).map_err(failed)?;
        let key = entry.sealing_key(&bytes);
        let opener = StreamOpener::new(&key, &PLACE, &header, source.size());
        let opener = opener.ok_or_else(|| wrong("it ends in the middle"))?;
        Ok(Box::new(Text::new(source, opener)))
    }
}

/// Runs work on a thread of its own: it waits for calls that want blocking threads, of which there may be one only.
async fn alone<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let (done, waiting) = tokio::sync::oneshot::channel();
    let spawned = std::thread::Builder::new().name("import".to_owned()).spawn(move || {
        let _ = done.send(work());
    });
    spawned.map_err(|error| Error::io("start a thread", "import", error))?;
    waiting.await.unwrap_or(Err(Error::ShuttingDown))
}

/// What lies behind the first bytes of a source.
#[derive(Debug)]
struct Behind {
    source: Box<dyn Source>,
    start: u64,
}

impl Source for Behind {
    fn size(&self) -> u64 {
        self.source.size().saturating_sub(self.start)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        self.source.read_at(self.start + offset, into)
    }
}
