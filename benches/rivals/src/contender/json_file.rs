//! One plain JSON file, read completely for every query and rewritten for every message. Nothing is sealed or synced.

use std::fs;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sottovoce::ChatMessage;

use super::{Contender, Outcome, Words};

pub(super) struct JsonFile {
    file: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct Conversation {
    messages: Vec<ChatMessage>,
}

impl JsonFile {
    pub(super) fn open(folder: &Path) -> Self {
        Self { file: folder.join("conversation.json") }
    }

    fn read(&self) -> Outcome<Conversation> {
        match fs::read(&self.file) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Conversation::default()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Contender for JsonFile {
    fn append(&mut self, message: ChatMessage) -> Outcome<()> {
        self.append_all(vec![message])
    }

    fn append_all(&mut self, messages: Vec<ChatMessage>) -> Outcome<()> {
        let mut conversation = self.read()?;
        conversation.messages.extend(messages);
        Ok(fs::write(&self.file, serde_json::to_vec(&conversation)?)?)
    }

    fn tail(&mut self, n: usize) -> Outcome<Words> {
        let mut messages = self.read()?.messages;
        let older = messages.len().saturating_sub(n);
        Ok(Words::Owned(messages.split_off(older)))
    }

    fn all(&mut self, _threads: usize) -> Outcome<Words> {
        Ok(Words::Owned(self.read()?.messages))
    }

    fn between(&mut self, times: &Range<Timestamp>) -> Outcome<Words> {
        let mut messages = self.read()?.messages;
        messages.retain(|message| times.contains(&message.timestamp));
        Ok(Words::Owned(messages))
    }
}
