//! Reads SQLite databases from a private copy in memory, because SQLite would write beside the original.

mod image;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags};
use sottovoce::import::Refusal;
use sottovoce::import::RefusalReason::{self, Corrupt};
use sottovoce::{Error, Result};

use crate::source::{Folder, SourceFile};

/// How often a changing database is copied before giving up.
const ATTEMPTS: usize = 5;

/// A database of another system. Its contents are not trusted.
#[derive(Debug)]
pub(crate) struct Sqlite {
    connection: Connection,
    /// The path of the original, for errors.
    path: PathBuf,
}

impl Sqlite {
    pub(crate) fn open(folder: &Folder, file: &str) -> Result<Self> {
        let path = folder.path().join(file);
        let gone = || Error::io("open the file", &path, std::io::ErrorKind::NotFound.into());
        let original = folder.open(file)?.ok_or_else(gone)?;
        let refused = |error| refusal(&path, &error);
        let connection = in_memory(folder, file, &original)?.map_err(refused)?;
        // An exclusive lock keeps SQLite from opening files beside it by name.
        let settings = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY; \
                        PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;";
        connection.execute_batch(settings).map_err(refused)?;
        let looked: rusqlite::Result<i64> =
            connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0));
        looked.map_err(refused)?;
        Ok(Self { connection, path })
    }

    /// An error about the whole database.
    pub(crate) fn not_importable(&self, reason: &'static str) -> Error {
        Error::NotImportable { path: self.path.clone(), reason }
    }

    fn refusal(&self, error: &rusqlite::Error) -> Error {
        refusal(&self.path, error)
    }

    /// Whether there is an ordinary table of that name, not a view or virtual table.
    pub(crate) fn has(&self, table: &str) -> Result<bool> {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1 AND rootpage > 0";
        let tables: rusqlite::Result<i64> =
            self.connection.query_row(sql, [table], |row| row.get(0));
        Ok(tables.map_err(|error| self.refusal(&error))? > 0)
    }

    /// The names of all such tables, without SQLite's own.
    pub(crate) fn tables(&self) -> Result<Vec<String>> {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 \
                   AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
        let read = || -> rusqlite::Result<Vec<String>> {
            self.connection.prepare(sql)?.query_map((), |row| row.get(0))?.collect()
        };
        read().map_err(|error| self.refusal(&error))
    }

    /// A `SELECT` of a table's columns, whose names are separated by spaces. A column that an older version lacks is NULL.
    /// `None` if one of the first `needed` columns is missing.
    pub(crate) fn select(
        &self,
        table: &str,
        wanted: &str,
        needed: usize,
    ) -> Result<Option<String>> {
        let there = || -> rusqlite::Result<HashSet<String>> {
            let mut info = self.connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
            info.query_map([table], |row| row.get(0))?.collect()
        };
        let there = there().map_err(|error| self.refusal(&error))?;
        if !wanted.split(' ').take(needed).all(|column| there.contains(column)) {
            return Ok(None);
        }
        let columns = wanted.split(' ');
        let columns: Vec<&str> =
            columns.map(|column| if there.contains(column) { column } else { "NULL" }).collect();
        Ok(Some(format!("SELECT {} FROM {table}", columns.join(", "))))
    }

    /// Counts the rows of a table.
    pub(crate) fn count(&self, table: &str) -> Result<usize> {
        let sql = format!("SELECT count(*) FROM \"{}\"", table.replace('"', "\"\""));
        let rows: rusqlite::Result<i64> = self.connection.query_row(&sql, (), |row| row.get(0));
        let rows = rows.map_err(|error| self.refusal(&error))?;
        Ok(usize::try_from(rows).unwrap_or(0))
    }

    /// Calls `take` with each row and its index. Returns whether all rows were read: a damaged database may end
    /// early.
    pub(crate) fn rows(
        &self,
        sql: &str,
        mut take: impl FnMut(usize, &rusqlite::Row<'_>),
    ) -> Result<bool> {
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare(sql)?;
            let mut rows = statement.query(())?;
            let mut done = 0;
            while let Some(row) = rows.next()? {
                take(done, row);
                done += 1;
            }
            Ok(())
        };
        match read() {
            Ok(()) => Ok(true),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
                Ok(false)
            }
            Err(error) => Err(self.refusal(&error)),
        }
    }

    /// The texts of a table; `None` for other values. Empty if the table or its first column is missing.
    pub(crate) fn texts(&self, table: &str, columns: &str) -> Result<Vec<Vec<Option<String>>>> {
        if !self.has(table)? {
            return Ok(Vec::new());
        }
        let Some(sql) = self.select(table, columns, 1)? else { return Ok(Vec::new()) };
        let read = || -> rusqlite::Result<Vec<Vec<Option<String>>>> {
            let mut statement = self.connection.prepare(&sql)?;
            let rows = statement.query_map((), |row| {
                let value = |(at, _)| Ok(text(row.get_ref(at)?).unwrap_or(None));
                columns.split(' ').enumerate().map(value).collect()
            })?;
            rows.collect()
        };
        read().map_err(|error| self.refusal(&error))
    }
}

/// Refuses a damaged table, so that the others are read.
pub(crate) fn or_refused<T: Default>(
    read: Result<T>,
    table: &str,
    refused: &mut Vec<Refusal>,
) -> Result<T> {
    match read {
        Err(Error::NotImportable { reason, .. }) => {
            refused.push(Refusal::new(table, Corrupt(reason)));
            Ok(T::default())
        }
        read => read,
    }
}

/// A value of a row.
pub(crate) fn value<'a>(
    row: &'a rusqlite::Row<'_>,
    at: usize,
) -> Result<ValueRef<'a>, RefusalReason> {
    row.get_ref(at).map_err(|_| Corrupt("the row cannot be read"))
}

pub(crate) fn text(value: ValueRef<'_>) -> Result<Option<String>, RefusalReason> {
    match value {
        ValueRef::Null => Ok(None),
        ValueRef::Text(bytes) => match str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(Corrupt("one of its texts is not UTF-8")),
        },
        _ => Err(Corrupt("one of its values should be a text and is not")),
    }
}

pub(crate) fn number(value: ValueRef<'_>) -> Result<Option<i64>, RefusalReason> {
    match value {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(number) => Ok(Some(number)),
        _ => Err(Corrupt("one of its values should be a number and is not")),
    }
}

/// Opens a consistent copy in memory.
fn in_memory(
    folder: &Folder,
    file: &str,
    original: &SourceFile,
) -> Result<rusqlite::Result<Connection>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    for _ in 0..ATTEMPTS {
        let Some(image) = image::read(folder, file, original)? else { continue };
        let open = || -> rusqlite::Result<Connection> {
            let mut connection = Connection::open_in_memory_with_flags(flags)?;
            // SQLite refuses an empty image.
            if !image.is_empty() {
                let size = image.len();
                connection.deserialize_read_exact(MAIN_DB, image.as_slice(), size, true)?;
            }
            Ok(connection)
        };
        return Ok(open());
    }
    let reason = "it keeps changing while it is read";
    Err(Error::NotImportable { path: folder.path().join(file), reason })
}

/// Reports only the kind of an SQLite error, because its text may quote stored values.
fn refusal(path: &Path, error: &rusqlite::Error) -> Error {
    let reason = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => "it is not an SQLite database",
        Some(ErrorCode::DatabaseCorrupt) => "the database is damaged",
        Some(ErrorCode::OutOfMemory) => "there is not enough memory to read it",
        _ => "SQLite cannot read it",
    };
    Error::NotImportable { path: path.to_owned(), reason }
}
