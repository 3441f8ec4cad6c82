//! redb, a key-value store of one file, with the same envelopes as the files; every commit is synced.

use std::ops::{Range, RangeBounds};
use std::path::Path;

use jiff::Timestamp;
use redb::{Database, ReadableDatabase, ReadableTableMetadata, TableDefinition};
use sottovoce::ChatMessage;

use super::{Contender, Outcome, Words};
use crate::ancestor::Seals;

/// Time and number, as milliseconds.
type Key = (i64, u64);

const MESSAGES: TableDefinition<'_, Key, &[u8]> = TableDefinition::new("messages");

pub(super) struct Redb {
    db: Database,
    seals: Seals,
}

impl Redb {
    pub(super) fn open(folder: &Path) -> Outcome<Self> {
        Ok(Self { db: Database::create(folder.join("messages.redb"))?, seals: Seals::new() })
    }

    fn read(&self, keys: impl RangeBounds<Key>) -> Outcome<Vec<ChatMessage>> {
        let table = self.db.begin_read()?.open_table(MESSAGES)?;
        table.range(keys)?.map(|entry| Ok(self.seals.open(entry?.1.value()))).collect()
    }
}

impl Contender for Redb {
    fn append(&mut self, message: ChatMessage) -> Outcome<()> {
        self.append_all(vec![message])
    }

    fn append_all(&mut self, messages: Vec<ChatMessage>) -> Outcome<()> {
        let transaction = self.db.begin_write()?;
        {
            let mut table = transaction.open_table(MESSAGES)?;
            let mut seq = table.len()?;
            for message in &messages {
                seq += 1;
                let key = (message.timestamp.as_millisecond(), seq);
                table.insert(key, self.seals.seal(message).as_slice())?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn tail(&mut self, n: usize) -> Outcome<Words> {
        let table = self.db.begin_read()?.open_table(MESSAGES)?;
        let newest = table.range::<Key>(..)?.rev().take(n);
        let mut messages = newest
            .map(|entry| Ok(self.seals.open(entry?.1.value())))
            .collect::<Outcome<Vec<_>>>()?;
        messages.reverse();
        Ok(Words::Owned(messages))
    }

    fn all(&mut self, _threads: usize) -> Outcome<Words> {
        Ok(Words::Owned(self.read(..)?))
    }

    fn between(&mut self, times: &Range<Timestamp>) -> Outcome<Words> {
        let keys = (times.start.as_millisecond(), 0)..(times.end.as_millisecond(), 0);
        Ok(Words::Owned(self.read(keys)?))
    }
}
