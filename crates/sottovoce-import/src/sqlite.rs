//! SQLite databases of other systems, read from a private copy: SQLite would write beside the original. The copy is in
//! memory; that of a very large one is in files whose names go as soon as they are open.

mod image;
mod scratch;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags};
use sottovoce::import::Refusal;
use sottovoce::import::RefusalReason::{self, Corrupt};
use sottovoce::{Error, Result};

use self::image::Image;
use self::scratch::Scratch;
use crate::source::{Folder, SourceFile};

/// How the copy is named.
const COPY: &str = "copy";
/// What may lie beside a database that is in use or was not closed.
const BESIDE: [&str; 2] = ["-wal", "-journal"];
/// How often a database that changes meanwhile is copied.
const ATTEMPTS: usize = 5;
const CHANGING: &str = "it keeps changing while it is read";

/// Folders with a plain copy of a database that an import left behind when it was killed. The next import of a database
/// removes them.
pub fn leftover_copies() -> Vec<PathBuf> {
    scratch::leftovers()
}

/// A database of another system, of which nothing is believed.
#[derive(Debug)]
pub(crate) struct Sqlite {
    connection: Connection,
    /// Where the original is, for messages.
    path: PathBuf,
}

impl Sqlite {
    pub(crate) fn open(folder: &Folder, file: &str) -> Result<Self> {
        let path = folder.path().join(file);
        let gone = || Error::io("open the file", &path, std::io::ErrorKind::NotFound.into());
        let original = folder.open(file)?.ok_or_else(gone)?;
        scratch::sweep();
        let refused = |error| refusal(&path, &error);
        let (connection, copy) = match in_memory(folder, file, &original)? {
            Some(connection) => (connection, None),
            None => {
                let copy = copied(folder, file, &original)?;
                (Connection::open_with_flags(copy.file(COPY), flags()), Some(copy))
            }
        };
        let connection = connection.map_err(refused)?;
        // Held exclusively, nothing of it is ever looked for by name again.
        let settings = "PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY; \
                        PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;";
        connection.execute_batch(settings).map_err(refused)?;
        let looked: rusqlite::Result<i64> =
            connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0));
        looked.map_err(refused)?;
        // Opened, it needs no names: whatever ends this process, no plain words stay behind.
        drop(copy);
        Ok(Self { connection, path })
    }

    /// Why it is not what it should be.
    pub(crate) fn not_importable(&self, reason: &'static str) -> Error {
        Error::NotImportable { path: self.path.clone(), reason }
    }

    fn refusal(&self, error: &rusqlite::Error) -> Error {
        refusal(&self.path, error)
    }

    /// Whether there is a table that holds its own rows, and is not made of others.
    pub(crate) fn has(&self, table: &str) -> Result<bool> {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1 AND rootpage > 0";
        let tables: rusqlite::Result<i64> =
            self.connection.query_row(sql, [table], |row| row.get(0));
        Ok(tables.map_err(|error| self.refusal(&error))? > 0)
    }

    /// The names of all such tables, but for SQLite's own.
    pub(crate) fn tables(&self) -> Result<Vec<String>> {
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 \
                   AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
        let read = || -> rusqlite::Result<Vec<String>> {
            self.connection.prepare(sql)?.query_map((), |row| row.get(0))?.collect()
        };
        read().map_err(|error| self.refusal(&error))
    }

    /// The columns of a table, as far as they are there: what an older version did not have is null. `None` where one of
    /// the first `needed` is missing.
    pub(crate) fn select(
        &self,
        table: &str,
        wanted: &[&str],
        needed: usize,
    ) -> Result<Option<String>> {
        let there = || -> rusqlite::Result<HashSet<String>> {
            let mut info = self.connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
            info.query_map([table], |row| row.get(0))?.collect()
        };
        let there = there().map_err(|error| self.refusal(&error))?;
        if !wanted.iter().take(needed).all(|column| there.contains(*column)) {
            return Ok(None);
        }
        let columns: Vec<&str> = wanted
            .iter()
            .map(|column| if there.contains(*column) { *column } else { "NULL" })
            .collect();
        Ok(Some(format!("SELECT {} FROM {table}", columns.join(", "))))
    }

    /// How many rows a table has.
    pub(crate) fn count(&self, table: &str) -> Result<usize> {
        let sql = format!("SELECT count(*) FROM \"{}\"", table.replace('"', "\"\""));
        let rows: rusqlite::Result<i64> = self.connection.query_row(&sql, (), |row| row.get(0));
        let rows = rows.map_err(|error| self.refusal(&error))?;
        Ok(usize::try_from(rows).unwrap_or(0))
    }

    /// Hands over every row, and how many were before it. Whether that was all: a database can be damaged from some row
    /// on.
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

    /// The texts of a table, null for whatever else is there; none where a table or its first column is missing.
    pub(crate) fn texts(&self, table: &str, columns: &[&str]) -> Result<Vec<Vec<Option<String>>>> {
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
        read().map_err(|error| self.refusal(&error))
    }
}

/// A table that is damaged is refused alone.
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
            Err(_) => Err(Corrupt("a text of it is not UTF-8")),
        },
        _ => Err(Corrupt("what should be a text of it is none")),
    }
}

pub(crate) fn number(value: ValueRef<'_>) -> Result<Option<i64>, RefusalReason> {
    match value {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(number) => Ok(Some(number)),
        _ => Err(Corrupt("what should be a number of it is none")),
    }
}

/// How a private copy is opened.
fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

/// The database in memory, as of one moment; `None` where it has to be copied to a file.
fn in_memory(
    folder: &Folder,
    file: &str,
    original: &SourceFile,
) -> Result<Option<rusqlite::Result<Connection>>> {
    for _ in 0..ATTEMPTS {
        let image = match image::read(folder, file, original)? {
            Image::Whole(image) => image,
            Image::Elsewhere => return Ok(None),
            Image::Changed => continue,
        };
        let open = || -> rusqlite::Result<Connection> {
            let mut connection = Connection::open_in_memory_with_flags(flags())?;
            // Of nothing there is no image.
            if !image.is_empty() {
                let size = image.len();
                connection.deserialize_read_exact(MAIN_DB, image.as_slice(), size, true)?;
            }
            Ok(connection)
        };
        return Ok(Some(open()));
    }
    Err(Error::NotImportable { path: folder.path().join(file), reason: CHANGING })
}

/// A copy that nobody changed while it was made: what the original holds besides is of the same moment then.
fn copied(folder: &Folder, file: &str, original: &SourceFile) -> Result<Scratch> {
    let scratch = Scratch::new()?;
    for _ in 0..ATTEMPTS {
        scratch.copy(COPY, original)?;
        for ending in BESIDE {
            let name = format!("{COPY}{ending}");
            match folder.open(&format!("{file}{ending}"))? {
                Some(beside) => scratch.copy(&name, &beside)?,
                None => scratch.forget(&name)?,
            }
        }
        if scratch.is_copy(COPY, original)? {
            return Ok(scratch);
        }
    }
    let path = folder.path().join(file);
    Err(Error::NotImportable { path, reason: CHANGING })
}

/// What SQLite says can quote what was stored, so only its kind is told.
fn refusal(path: &Path, error: &rusqlite::Error) -> Error {
    let reason = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => "it is no SQLite database",
        Some(ErrorCode::DatabaseCorrupt) => "the database is damaged",
        Some(ErrorCode::OutOfMemory) => "there is not enough memory to read it",
        _ => "SQLite cannot read it",
    };
    Error::NotImportable { path: path.to_owned(), reason }
}
