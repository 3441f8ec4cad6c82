//! An encrypted SQLite database: raw key, so that nothing is derived; WAL; every commit synced; statements prepared.

use std::ops::Range;
use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, Params, Row, params};
use sottovoce::ChatMessage;

use super::{Contender, Outcome, Words};

const COLUMNS: &str = "time, role, content, metadata, offset, seq";

pub(super) struct SqlCipher {
    db: Connection,
}

impl SqlCipher {
    pub(super) fn create(folder: &Path) -> Outcome<()> {
        Self::open(folder)?.db.execute_batch(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE message (
                 seq INTEGER PRIMARY KEY,
                 time INTEGER NOT NULL,
                 role TEXT NOT NULL,
                 content TEXT NOT NULL,
                 metadata TEXT,
                 offset INTEGER
             );
             CREATE INDEX message_time ON message (time);",
        )?;
        Ok(())
    }

    /// The mode WAL is kept in the file. An index ends with the row's number, and so with `seq`.
    pub(super) fn open(folder: &Path) -> Outcome<Self> {
        let db = Connection::open(folder.join("messages.db"))?;
        let key = "0f".repeat(32);
        db.execute_batch(&format!("PRAGMA key = \"x'{key}'\"; PRAGMA synchronous = FULL;"))?;
        Ok(Self { db })
    }

    fn insert(db: &Connection, message: &ChatMessage) -> Outcome<()> {
        let metadata = match message.metadata.is_empty() {
            true => None,
            false => Some(serde_json::to_string(&message.metadata)?),
        };
        let mut insert = db.prepare_cached(
            "INSERT INTO message (time, role, content, metadata, offset) VALUES (?, ?, ?, ?, ?)",
        )?;
        insert.execute(params![
            message.timestamp.as_millisecond(),
            message.role.as_str(),
            message.content,
            metadata,
            message.offset_minutes
        ])?;
        Ok(())
    }

    fn select(&self, rest: &str, values: impl Params) -> Outcome<Vec<ChatMessage>> {
        let mut select =
            self.db.prepare_cached(&format!("SELECT {COLUMNS} FROM message {rest}"))?;
        let mut rows = select.query(values)?;
        let mut messages = Vec::new();
        while let Some(row) = rows.next()? {
            messages.push(message(row)?);
        }
        Ok(messages)
    }
}

fn message(row: &Row<'_>) -> Outcome<ChatMessage> {
    let role = row.get_ref(1)?.as_str()?.parse()?;
    let mut message =
        ChatMessage::at(role, row.get::<_, String>(2)?, Timestamp::from_millisecond(row.get(0)?)?);
    if let Some(metadata) = row.get_ref(3)?.as_str_or_null()? {
        message.metadata = serde_json::from_str(metadata)?;
    }
    message.offset_minutes = row.get(4)?;
    Ok(message)
}

impl Contender for SqlCipher {
    fn append(&mut self, message: ChatMessage) -> Outcome<()> {
        Self::insert(&self.db, &message)
    }

    fn append_all(&mut self, messages: Vec<ChatMessage>) -> Outcome<()> {
        let transaction = self.db.transaction()?;
        for message in &messages {
            Self::insert(&transaction, message)?;
        }
        Ok(transaction.commit()?)
    }

    fn tail(&mut self, n: usize) -> Outcome<Words> {
        let mut messages = self.select("ORDER BY time DESC, seq DESC LIMIT ?", [n as i64])?;
        messages.reverse();
        Ok(Words::Owned(messages))
    }

    /// In the table's own order, which is the fastest.
    fn all(&mut self, _threads: usize) -> Outcome<Words> {
        Ok(Words::Owned(self.select("ORDER BY seq", [])?))
    }

    fn between(&mut self, times: &Range<Timestamp>) -> Outcome<Words> {
        let span = [times.start.as_millisecond(), times.end.as_millisecond()];
        Ok(Words::Owned(self.select("WHERE time >= ? AND time < ? ORDER BY time, seq", span)?))
    }

    fn tidy(&mut self) -> Outcome<()> {
        Ok(self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
    }
}
