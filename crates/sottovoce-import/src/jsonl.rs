//! Reads JSON lines that any program or person wrote.

mod row;

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use sottovoce::admin::Progress;
use sottovoce::import::{ImportedMessage, ImportedMessages, RefusalReason};
use sottovoce::{Error, Result};

use self::row::Row;
use crate::reader::Reader;
use crate::source::lines::Lines;
use crate::source::open_named;
use crate::system::JSONL;
use crate::twins::Twins;

/// The name of this format in reports.
const FORM: &str = "message";

/// Reads messages from JSON lines, one object each, that any program or person wrote.
///
/// | field | |
/// |---|---|
/// | `role` | `user`, `assistant`, `system` or `tool`; also `human`, `ai`, `bot` and `model` |
/// | `content` | the text |
/// | `timestampUtc`, `timestamp`, `created_at`, `createdAt`, `time` or `date` | RFC 3339 with an offset, or seconds
/// or milliseconds since 1970 |
/// | `id`, `metadata`, `toolCalls`, `toolCallId`, `threadId`, `offsetMinutes` | optional, as in this store's own
/// records |
///
/// Other fields are ignored. A line over 16 MiB is refused. The messages are ordered by time, and within one moment
/// by line. `progress` counts bytes.
///
/// A repeated import recognizes a message by its line without the metadata, so it imports only what is new in a file
/// that has grown or moved. A message without a time is recognized by the file's name too. Each of several equal
/// lines is a message, unless they have the same `id`.
#[must_use]
pub struct JsonLines {
    input: Input,
    thread: Option<String>,
    now: Option<Timestamp>,
}

enum Input {
    File(PathBuf),
    Stream(Box<dyn Read + Send>),
}

/// The messages that were read so far.
struct ParsedFile {
    messages: ImportedMessages,
    /// The file's name without its ending.
    stem: Option<String>,
    twins: Twins,
    /// The indexes of messages without a time.
    timeless: Vec<usize>,
}

impl JsonLines {
    /// Reads a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { input: Input::File(path.into()), thread: None, now: None }
    }

    /// Reads a stream, such as standard input.
    pub fn from_reader(input: impl Read + Send + 'static) -> Self {
        Self { input: Input::Stream(Box::new(input)), thread: None, now: None }
    }

    /// Puts messages without a `threadId` into this thread. The thread does not identify a message.
    pub fn in_thread(mut self, thread: Option<String>) -> Self {
        self.thread = thread;
        self
    }

    /// Accepts lines without a time, which are refused otherwise. The last one gets this time, and those before it a
    /// millisecond less each.
    pub fn said_at(mut self, now: Timestamp) -> Self {
        self.now = Some(now);
        self
    }
}

impl Reader for JsonLines {
    type Output = ImportedMessages;

    fn read_blocking(self, progress: &dyn Fn(Progress)) -> Result<ImportedMessages> {
        let Self { input, thread, now } = self;
        let mut found = ParsedFile::new();
        let (path, total, input): (_, _, Box<dyn Read>) = match input {
            Input::Stream(input) => (PathBuf::from("standard input"), 0, input),
            Input::File(path) => {
                found.stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                let file = open_named(&path)?;
                let total = usize::try_from(file.size).unwrap_or(0);
                (path, total, Box::new(file))
            }
        };
        let place = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let mut lines = Lines::new(input);
        let failed = |error| Error::io("read the file", Path::new(&path), error);
        while let Some(line) = lines.read_line().map_err(failed)? {
            let place = format!("{place}#{}", line.number);
            let row = line.bytes.and_then(|bytes| row::read(&bytes));
            let message = row.and_then(|row| found.take(row, now.is_some()));
            found.messages.push(place, message);
            progress(Progress { done: lines.read, total: total.max(lines.read) });
        }
        Ok(found.end(thread.as_deref(), now))
    }
}

impl ParsedFile {
    fn new() -> Self {
        let (twins, timeless) = (Twins::default(), Vec::new());
        Self { messages: ImportedMessages::new(JSONL), stem: None, twins, timeless }
    }

    /// The message of a row.
    fn take(&mut self, row: Row, may_be_timeless: bool) -> Result<ImportedMessage, RefusalReason> {
        if row.is_timeless && !may_be_timeless {
            return Err(RefusalReason::Corrupt("it has no time"));
        }
        let stem = self.stem.as_deref().filter(|_| row.is_timeless);
        let mut message = match (row.id, stem) {
            (None, stem) => {
                let name = stem.unwrap_or_default();
                self.twins.tell_apart(JSONL, name, FORM, row.message)?
            }
            (Some(id), None) => ImportedMessage::new(JSONL, &id, FORM, row.message)?,
            (Some(id), Some(stem)) => {
                ImportedMessage::new(JSONL, &format!("{stem}/{id}"), FORM, row.message)?
            }
        };
        if row.is_timeless {
            self.timeless.push(self.messages.messages.len());
        }
        message.message.metadata.extend(row.notes);
        Ok(message)
    }

    fn end(self, thread: Option<&str>, now: Option<Timestamp>) -> ImportedMessages {
        let Self { mut messages, timeless, .. } = self;
        for (before, at) in (0..).zip(timeless.into_iter().rev()) {
            let said =
                now.and_then(|now| now.checked_sub(SignedDuration::from_millis(before)).ok());
            if let (Some(said), Some(imported)) = (said, messages.messages.get_mut(at)) {
                imported.message.timestamp = said;
            }
        }
        for ImportedMessage { message, .. } in &mut messages.messages {
            if message.thread_id.is_none() {
                message.thread_id = thread.map(str::to_owned);
            }
        }
        messages.messages.sort_by_key(|imported| imported.message.timestamp);
        messages
    }
}

impl fmt::Debug for JsonLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = match &self.input {
            Input::File(path) => Some(path),
            Input::Stream(_) => None,
        };
        f.debug_struct("JsonLines").field("path", &path).finish_non_exhaustive()
    }
}
