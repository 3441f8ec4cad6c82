//! One file per message in one flat folder. A read lists and sorts all names, then opens what it wants.

use std::ffi::OsString;
use std::ops::Range;
use std::path::Path;

use jiff::Timestamp;
use sottovoce::ChatMessage;

use super::{Contender, Outcome, Words};
use crate::ancestor::LegacyFormat;

pub(super) struct Document {
    files: LegacyFormat,
}

impl Document {
    pub(super) fn open(folder: &Path) -> Self {
        Self { files: LegacyFormat::resume(folder, 0) }
    }
}

impl Contender for Document {
    fn append(&mut self, message: ChatMessage) -> Outcome<()> {
        self.files.append(&message);
        Ok(())
    }

    fn append_all(&mut self, messages: Vec<ChatMessage>) -> Outcome<()> {
        for message in &messages {
            self.files.append(message);
        }
        Ok(())
    }

    fn tail(&mut self, n: usize) -> Outcome<Words> {
        Ok(Words::Owned(self.files.read_tail(n)))
    }

    fn all(&mut self, _threads: usize) -> Outcome<Words> {
        self.tail(usize::MAX)
    }

    fn between(&mut self, times: &Range<Timestamp>) -> Outcome<Words> {
        let name = |time: Timestamp| OsString::from(time.strftime("%Y%m%dT%H%M%S%3fZ").to_string());
        let wanted = name(times.start)..name(times.end);
        let mut names = self.files.names();
        names.retain(|name| wanted.contains(name));
        names.sort_unstable();
        Ok(Words::Owned(names.iter().map(|name| self.files.read(name)).collect()))
    }
}
