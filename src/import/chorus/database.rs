//! The database of chorus, read from a private copy: SQLite would write beside the original.

use std::collections::HashSet;
use std::path::PathBuf;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::row::{self, Row};
use crate::blob::scratch::Scratch;
use crate::blob::{Blobs, Source};
use crate::error::{Error, Result};
use crate::import::RefusalReason::{self, Corrupt};

/// How the copy is named.
const COPY: &str = "copy";
/// What may lie beside a database that is in use or was not closed.
const BESIDE: [&str; 2] = ["-wal", "-journal"];
/// How often a database that changes meanwhile is copied.
const ATTEMPTS: usize = 5;
/// Rows of these have no place in a store.
const OTHERS: [&str; 5] = ["branches", "audit_log", "thread_steps", "processes", "settings"];

#[derive(Debug)]
pub(super) struct Database {
    connection: Connection,
    /// Where the original is, for messages.
    path: PathBuf,
}

/// A row of `sessions`.
pub(super) struct Saved {
    pub(super) id: String,
    pub(super) agent: String,
    pub(super) description: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) saved_at: Option<String>,
    pub(super) window: [Option<String>; 2],
}

impl Database {
    pub(super) fn open(folder: &dyn Blobs, file: &str) -> Result<Self> {
        let path = folder.path().join(file);
        let gone = || Error::io("open the file", &path, std::io::ErrorKind::NotFound.into());
        let original = folder.open(file)?.ok_or_else(gone)?;
        let copy = copied(folder, file, &*original)?;
        let refused = |error| refusal(&path, &error);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(copy.file(COPY), flags).map_err(refused)?;
        // Held exclusively, nothing of it is ever looked for by name again.
        let settings = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY; \
                        PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;";
        connection.execute_batch(settings).map_err(refused)?;
        let looked: rusqlite::Result<i64> =
            connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0));
        looked.map_err(refused)?;
        // Opened, it needs no names: whatever ends this process, no plain words stay behind.
        drop(copy);
        let database = Self { connection, path };
        if !database.has("messages")? {
            return Err(database.foreign("it has no table `messages`"));
        }
        Ok(database)
    }

    fn foreign(&self, reason: &'static str) -> Error {
        Error::Foreign { path: self.path.clone(), reason }
    }

    /// Whether there is a table that holds its own rows, and is not made of others.
    fn has(&self, table: &str) -> Result<bool> {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1 AND rootpage > 0";
        let tables: rusqlite::Result<i64> =
            self.connection.query_row(sql, [table], |row| row.get(0));
        Ok(tables.map_err(|error| refusal(&self.path, &error))? > 0)
    }

    /// The columns of a table, as far as they are there: what an older version did not have is null.
    fn select(&self, table: &str, wanted: &[&str], needed: usize) -> Result<Option<String>> {
        let there = || -> rusqlite::Result<HashSet<String>> {
            let mut info = self.connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
            info.query_map([table], |row| row.get(0))?.collect()
        };
        let there = there().map_err(|error| refusal(&self.path, &error))?;
        if !wanted.iter().take(needed).all(|column| there.contains(*column)) {
            return Ok(None);
        }
        let columns: Vec<&str> = wanted
            .iter()
            .map(|column| if there.contains(*column) { *column } else { "NULL" })
            .collect();
        Ok(Some(format!("SELECT {} FROM {table}", columns.join(", "))))
    }

    fn count(&self, table: &str) -> Result<usize> {
        let sql = format!("SELECT count(*) FROM {table}");
        let rows: rusqlite::Result<i64> = self.connection.query_row(&sql, (), |row| row.get(0));
        let rows = rows.map_err(|error| refusal(&self.path, &error))?;
        Ok(usize::try_from(rows).unwrap_or(0))
    }

    /// How many rows of other tables there are.
    pub(super) fn others(&self) -> Result<usize> {
        let mut rows = 0;
        for table in OTHERS {
            if self.has(table)? {
                rows += self.count(table)?;
            }
        }
        Ok(rows)
    }

    /// Hands over every message, or the name of one that is none and why, in the order of their ids. Where the database
    /// is damaged from some message on, says so.
    pub(super) fn messages(
        &self,
        mut take: impl FnMut(usize, Result<Row, (String, RefusalReason)>),
    ) -> Result<Option<RefusalReason>> {
        let columns = [
            "id",
            "agent_name",
            "role",
            "content",
            "timestamp",
            "thread_id",
            "tool_calls",
            "tool_call_id",
            "discord_message_id",
        ];
        let sql = self.select("messages", &columns, 5)?;
        let sql = sql.ok_or_else(|| self.foreign("its table `messages` is not that of chorus"))?;
        let read = |take: &mut dyn FnMut(usize, _)| -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare(&format!("{sql} ORDER BY id"))?;
            let mut rows = statement.query(())?;
            let mut done = 0;
            while let Some(row) = rows.next()? {
                let id = number(row.get_ref(0)?);
                let name = match id {
                    Ok(Some(id)) => row::name(id),
                    _ => format!("messages, row {}", done + 1),
                };
                take(done, parsed(row).map_err(|reason| (name, reason)));
                done += 1;
            }
            Ok(())
        };
        match read(&mut take) {
            Ok(()) => Ok(None),
            Err(error) if is_damage(&error) => {
                Ok(Some(Corrupt("the database is damaged; some of its messages cannot be read")))
            }
            Err(error) => Err(refusal(&self.path, &error)),
        }
    }

    pub(super) fn messages_count(&self) -> Result<usize> {
        self.count("messages")
    }

    /// The agents whose context was cleared, and up to when.
    pub(super) fn cleared(&self) -> Result<Vec<(String, String)>> {
        let columns = ["name", "last_clear_time"];
        let texts = self.texts("agents", &columns)?;
        let pair = |row: Vec<Option<String>>| match <[_; 2]>::try_from(row) {
            Ok([Some(agent), Some(at)]) => Some((agent, at)),
            _ => None,
        };
        Ok(texts.into_iter().filter_map(pair).collect())
    }

    /// The saved sessions.
    pub(super) fn sessions(&self) -> Result<Vec<Saved>> {
        let columns = [
            "id",
            "agent_name",
            "description",
            "summary",
            "saved_at",
            "window_start",
            "window_end",
        ];
        let saved = |row: Vec<Option<String>>| {
            let [id, agent, description, summary, saved_at, start, end] =
                <[_; 7]>::try_from(row).ok()?;
            let (id, agent, window) = (id?, agent?, [start, end]);
            Some(Saved { id, agent, description, summary, saved_at, window })
        };
        Ok(self.texts("sessions", &columns)?.into_iter().filter_map(saved).collect())
    }

    /// The texts of a table, null for whatever else is there; none where a table or its first column is missing.
    fn texts(&self, table: &str, columns: &[&str]) -> Result<Vec<Vec<Option<String>>>> {
        if !self.has(table)? {
            return Ok(Vec::new());
        }
        let Some(sql) = self.select(table, columns, 1)? else { return Ok(Vec::new()) };
        let read = || -> rusqlite::Result<Vec<Vec<Option<String>>>> {
            let mut statement = self.connection.prepare(&sql)?;
            let rows = statement.query_map((), |row| {
                (0..columns.len()).map(|at| Ok(text(row.get_ref(at)?).unwrap_or(None))).collect()
            })?;
            rows.collect()
        };
        read().map_err(|error| refusal(&self.path, &error))
    }
}

/// A copy that nobody changed while it was made: what the original holds besides is of the same moment then.
fn copied(folder: &dyn Blobs, file: &str, original: &dyn Source) -> Result<Scratch> {
    let scratch = Scratch::new()?;
    for _ in 0..ATTEMPTS {
        scratch.copy(COPY, original)?;
        for ending in BESIDE {
            let name = format!("{COPY}{ending}");
            match folder.open(&format!("{file}{ending}"))? {
                Some(beside) => scratch.copy(&name, &*beside)?,
                None => scratch.forget(&name)?,
            }
        }
        if scratch.is_copy(COPY, original)? {
            return Ok(scratch);
        }
    }
    let path = folder.path().join(file);
    Err(Error::Foreign { path, reason: "it keeps changing while it is read" })
}

fn parsed(row: &rusqlite::Row<'_>) -> Result<Row, RefusalReason> {
    let value = |at| row.get_ref(at).map_err(|_| Corrupt("the row cannot be read"));
    let needed = |at, reason| text(value(at)?)?.ok_or(Corrupt(reason));
    let calls = text(value(6)?)?.filter(|text| !text.trim_ascii().is_empty());
    let unreadable = |_| Corrupt("its tool_calls are not JSON");
    Ok(Row {
        id: number(value(0)?)?.ok_or(Corrupt("it has no id"))?,
        agent: needed(1, "it has no agent_name")?,
        role: needed(2, "it has no role")?,
        content: text(value(3)?)?,
        timestamp: needed(4, "it has no timestamp")?,
        thread: number(value(5)?)?,
        tool_calls: calls
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(unreadable)?,
        tool_call_id: text(value(7)?)?,
        discord_message_id: number(value(8)?)?,
    })
}

fn text(value: ValueRef<'_>) -> Result<Option<String>, RefusalReason> {
    match value {
        ValueRef::Null => Ok(None),
        ValueRef::Text(bytes) => match str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(Corrupt("a text of it is not UTF-8")),
        },
        _ => Err(Corrupt("what should be a text of it is none")),
    }
}

fn number(value: ValueRef<'_>) -> Result<Option<i64>, RefusalReason> {
    match value {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(number) => Ok(Some(number)),
        _ => Err(Corrupt("what should be a number of it is none")),
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
}

/// What SQLite says can quote what was stored, so only its kind is told.
fn refusal(path: &std::path::Path, error: &rusqlite::Error) -> Error {
    let reason = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => "it is no SQLite database",
        Some(ErrorCode::DatabaseCorrupt) => "the database is damaged",
        Some(ErrorCode::OutOfMemory) => "there is not enough memory to read it",
        _ => "SQLite cannot read it",
    };
    Error::Foreign { path: path.to_owned(), reason }
}
