//! Exports: a conversation as JSON that can be imported again exactly, or as Markdown for people. They are plain text,
//! unless they are sealed under a store's key.

mod exported;
pub(crate) mod json;
mod markdown;
pub(crate) mod sealed;

use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;

use crate::directory::fs::new_file::NewFile;
use crate::error::{Error, Result};
use crate::message::ChatMessage;
use crate::store::file_store::{CancelOnDrop, blocking};
use crate::store::read::record_dump::{self, Body, Part};
use crate::store::read::stats;
use crate::store::{FileConversationStore, Finding, Progress, Stats};
use exported::unwritten;
use sealed::SealedWriter;

pub use exported::Exported;

/// The form of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExportForm {
    /// Everything, exactly. A [`Backup`](crate::transfer::import::Backup) imports it.
    Json,
    /// For people to read.
    Markdown,
}

/// The messages to export. The default is all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct ExportRange(Part);

impl Default for ExportRange {
    fn default() -> Self {
        Self(Part::ALL)
    }
}

impl ExportRange {
    /// Only messages with these sequence numbers.
    pub fn seqs(mut self, seqs: RangeInclusive<u64>) -> Self {
        (self.0.first, self.0.last) = seqs.into_inner();
        self
    }

    /// Only messages from one moment to another, both included.
    pub fn times(mut self, times: RangeInclusive<Timestamp>) -> Self {
        (self.0.since, self.0.until) = times.into_inner();
        self
    }

    /// Calls `visit` with each message in the range, in the order of sequence numbers, to write an export in a format
    /// of your own. Passes `state` from call to call. Returns it, with findings about records that could not be read.
    /// Deletes expired messages first.
    ///
    /// # Errors
    /// Those of reading the store, and of `visit`, which ends the export.
    pub async fn fold<T: Send + 'static>(
        self,
        store: &FileConversationStore,
        mut state: T,
        mut visit: impl FnMut(&mut T, ChatMessage, Progress) -> Result<()> + Send + 'static,
    ) -> Result<(T, Vec<Finding>)> {
        let store = store.clone();
        blocking(move || {
            let stats = remove_hidden(&store)?;
            let total = usize::try_from(stats.message_count).unwrap_or(usize::MAX);
            let tail = store.reader().load(0)?;
            let mut done = 0;
            let skipped = record_dump::read(store.reader(), &tail, self.0, &mut |record| {
                let Body::Message(message) = record.body else { return Ok(()) };
                done += 1;
                visit(&mut state, message, Progress { done, total: total.max(done) })
            })?;
            Ok((state, skipped))
        })
        .await
    }

    pub(crate) fn part(self) -> Part {
        self.0
    }
}

/// Writes conversations one after the other.
pub struct Exporter {
    form: ExportForm,
    to: Option<Target>,
    done: Exported,
}

/// The destination.
enum Target {
    Plain(Box<dyn Write + Send>),
    File(NewFile),
    Sealed(Box<SealedWriter>),
}

impl Exporter {
    /// Writes to a new file that only its owner can read. The file appears when [`finish`](Self::finish) returns, or
    /// not at all.
    ///
    /// # Errors
    /// [`Error::Io`], also if the name is taken.
    pub fn to_file(form: ExportForm, path: &Path) -> Result<Self> {
        Ok(Self::new(form, Target::File(NewFile::create(path)?)))
    }

    /// Writes to any writer.
    pub fn to_writer(form: ExportForm, to: impl Write + Send + 'static) -> Self {
        Self::new(form, Target::Plain(Box::new(to)))
    }

    /// Writes JSON to a new file, sealed under the key of the store below a root. That key opens it, also when the
    /// store is gone.
    ///
    /// # Errors
    /// Those of [`to_file`](Self::to_file). [`Error::NoKey`] if there is no store.
    pub fn sealed(path: &Path, store: &FileConversationStore) -> Result<Self> {
        let writer = SealedWriter::create(path, &store.reader().folder)?;
        Ok(Self::new(ExportForm::Json, Target::Sealed(Box::new(writer))))
    }

    fn new(form: ExportForm, to: Target) -> Self {
        Self { form, to: Some(to), done: Exported::default() }
    }

    /// Writes a conversation, calling `progress` for each message. Deletes expired messages first.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the settings cannot be read. [`Error::Io`] if the export cannot be written.
    pub async fn add(
        &mut self,
        store: &FileConversationStore,
        range: ExportRange,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<()> {
        let mut to = self.to.take().ok_or(Error::ShuttingDown)?;
        let (form, is_first, store) = (self.form, self.done.conversations == 0, store.clone());
        let stop = CancelOnDrop::default();
        let stopped = stop.flag();
        let (to, outcome) = blocking(move || {
            let mut writing = Attended { to: &mut to, stopped: &stopped };
            let outcome = write(form, is_first, &store, range.part(), &mut writing, &progress);
            Ok((to, outcome))
        })
        .await?;
        drop(stop);
        self.to = Some(to);
        let one = outcome?;
        let done = &mut self.done;
        done.conversations += 1;
        done.messages += one.messages;
        done.artifacts += one.artifacts;
        done.snapshots += one.snapshots;
        done.skipped.extend(one.skipped);
        Ok(())
    }

    /// Ends the export.
    ///
    /// # Errors
    /// [`Error::Io`] if the export cannot be written.
    pub async fn finish(mut self) -> Result<Exported> {
        let mut to = self.to.take().ok_or(Error::ShuttingDown)?;
        let (form, done) = (self.form, self.done.clone());
        blocking(move || {
            if form == ExportForm::Json {
                json::end(&mut to, done.conversations == 0).map_err(unwritten)?;
            }
            match to {
                Target::Plain(mut to) => to.flush().map_err(unwritten)?,
                Target::File(file) => file.keep()?,
                Target::Sealed(sealed) => sealed.keep()?,
            }
            Ok(done)
        })
        .await
    }
}

fn write(
    form: ExportForm,
    is_first: bool,
    store: &FileConversationStore,
    part: Part,
    to: &mut Attended<'_>,
    progress: &dyn Fn(Progress),
) -> Result<Exported> {
    remove_hidden(store)?;
    let reader = store.reader();
    match form {
        ExportForm::Json => json::conversation(reader, part, to, is_first, progress),
        ExportForm::Markdown => markdown::conversation(reader, part, to, progress),
    }
}

/// Deletes expired messages. Returns the statistics from before.
fn remove_hidden(store: &FileConversationStore) -> Result<Stats> {
    let stats = stats::stats(store.reader())?;
    if stats.hidden > 0 {
        store.writer().blocking_lock().cleanup()?;
    }
    Ok(stats)
}

/// Stops writing when nobody waits for the export any more.
struct Attended<'a> {
    to: &'a mut Target,
    stopped: &'a AtomicBool,
}

impl Write for Attended<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.stopped.load(Ordering::Relaxed) {
            true => Err(io::Error::other("nobody waits for it any more")),
            false => self.to.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(to) => to.write(bytes),
            Self::File(to) => to.write(bytes),
            Self::Sealed(to) => to.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(to) => to.flush(),
            Self::File(to) => to.flush(),
            Self::Sealed(to) => to.flush(),
        }
    }
}

debug_shows!(Exporter: form);
