//! Messages that any program wrote, or anybody, one JSON object a line.

mod row;

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use sottovoce::import::{ImportedMessage, ImportedMessages, Refusal, RefusalReason};
use sottovoce::{Error, Progress, Result};

use self::row::Row;
use crate::source::lines::Lines;
use crate::source::{blocking, open_named};
use crate::system::JSONL;
use crate::twins::Twins;

/// How reports name the form.
const FORM: &str = "message";

/// Messages that any program wrote, or anybody, one JSON object a line: `role` (also `human`, `ai`, `bot` and `model`) and
/// `content`; the time under `timestampUtc`, `timestamp`, `created_at`, `createdAt`, `time` or `date`, as RFC 3339 with an
/// offset or as seconds or milliseconds since 1970; and where there are any `id`, `metadata`, `toolCalls`, `toolCallId`,
/// `threadId` and `offsetMinutes`, as this store's own records have them. Other fields are passed over. The source is only
/// read.
///
/// A message is known again by what its line says of it, notes excepted: of a file that has grown or moved, another import
/// takes only what is new. One whose line tells no time says too little for that, and is known by the file's name besides.
/// Of lines that are the same in everything each is a message, unless they have the same `id`.
pub struct JsonLines {
    input: Input,
    thread: Option<String>,
    now: Option<Timestamp>,
}

enum Input {
    File(PathBuf),
    Stream(Box<dyn Read + Send>),
}

/// What was read so far.
struct Found {
    foreign: ImportedMessages,
    /// The file's name without its ending.
    stem: Option<String>,
    twins: Twins,
    /// Which of the messages do not say when they were said.
    timeless: Vec<usize>,
}

impl JsonLines {
    /// A file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { input: Input::File(path.into()), thread: None, now: None }
    }

    /// What can be read only once, such as standard input.
    pub fn from_reader(input: impl Read + Send + 'static) -> Self {
        Self { input: Input::Stream(Box::new(input)), thread: None, now: None }
    }

    /// Puts messages whose lines name no thread into this one. That does not tell which messages they are.
    #[must_use]
    pub fn in_thread(mut self, thread: Option<String>) -> Self {
        self.thread = thread;
        self
    }

    /// Takes lines that do not say when they were said too: the last as of this moment, and those before it a
    /// millisecond earlier each. They are refused otherwise.
    #[must_use]
    pub fn said_at(mut self, now: Timestamp) -> Self {
        self.now = Some(now);
        self
    }

    /// Reads every line, calling `progress` with bytes as it goes. All messages are in memory afterwards, in the order
    /// of their times; what was said in the same moment stays in that of the lines. A line over 16 MiB is refused.
    ///
    /// # Errors
    /// Only what keeps the input from being read to its end; what concerns one line is a [`Refusal`].
    pub async fn read(
        self,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<ImportedMessages> {
        blocking(move || self.read_all(&progress)).await
    }

    fn read_all(self, progress: &dyn Fn(Progress)) -> Result<ImportedMessages> {
        let Self { input, thread, now } = self;
        let mut found = Found::new();
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
            if let Err(reason) = row.and_then(|row| found.take(row, &place, now.is_some())) {
                found.foreign.refused.push(Refusal::new(place, reason));
            }
            progress(Progress { done: lines.read, total: total.max(lines.read) });
        }
        Ok(found.end(thread.as_deref(), now))
    }
}

impl Found {
    fn new() -> Self {
        let (twins, timeless) = (Twins::default(), Vec::new());
        Self { foreign: ImportedMessages::new(JSONL), stem: None, twins, timeless }
    }

    fn take(&mut self, row: Row, place: &str, may_be_timeless: bool) -> Result<(), RefusalReason> {
        if row.is_timeless && !may_be_timeless {
            return Err(RefusalReason::Corrupt("it has no time"));
        }
        let stem = self.stem.as_deref().filter(|_| row.is_timeless);
        let message = match (row.id, stem) {
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
            self.timeless.push(self.foreign.messages.len());
        }
        let mut message = message.found_in(place.to_owned());
        message.message.metadata.extend(row.notes);
        self.foreign.messages.push(message);
        Ok(())
    }

    fn end(self, thread: Option<&str>, now: Option<Timestamp>) -> ImportedMessages {
        let Self { mut foreign, timeless, .. } = self;
        for (before, at) in (0..).zip(timeless.into_iter().rev()) {
            let said =
                now.and_then(|now| now.checked_sub(SignedDuration::from_millis(before)).ok());
            if let (Some(said), Some(foreign)) = (said, foreign.messages.get_mut(at)) {
                foreign.message.timestamp = said;
            }
        }
        for ImportedMessage { message, .. } in &mut foreign.messages {
            if message.thread_id.is_none() {
                message.thread_id = thread.map(str::to_owned);
            }
        }
        foreign.messages.sort_by_key(|foreign| foreign.message.timestamp);
        foreign
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
