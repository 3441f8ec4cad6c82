//! Plain JSON lines in one file, read and parsed completely for every query. Nothing is sealed or synced.

use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sottovoce::ChatMessage;

use super::{Contender, Outcome, Words};

pub(super) struct JsonLines {
    file: PathBuf,
}

impl JsonLines {
    pub(super) fn open(folder: &Path) -> Self {
        Self { file: folder.join("messages.jsonl") }
    }

    fn read(&self) -> Outcome<Vec<ChatMessage>> {
        let text = fs::read_to_string(&self.file)?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }
}

impl Contender for JsonLines {
    fn append(&mut self, message: ChatMessage) -> Outcome<()> {
        self.append_all(vec![message])
    }

    fn append_all(&mut self, messages: Vec<ChatMessage>) -> Outcome<()> {
        let mut lines = Vec::new();
        for message in &messages {
            serde_json::to_writer(&mut lines, message)?;
            lines.push(b'\n');
        }
        Ok(File::options().append(true).create(true).open(&self.file)?.write_all(&lines)?)
    }

    fn tail(&mut self, n: usize) -> Outcome<Words> {
        let mut messages = self.read()?;
        let older = messages.len().saturating_sub(n);
        Ok(Words::Owned(messages.split_off(older)))
    }

    fn all(&mut self, _threads: usize) -> Outcome<Words> {
        Ok(Words::Owned(self.read()?))
    }

    fn between(&mut self, times: &Range<Timestamp>) -> Outcome<Words> {
        let mut messages = self.read()?;
        messages.retain(|message| times.contains(&message.timestamp));
        Ok(Words::Owned(messages))
    }
}
