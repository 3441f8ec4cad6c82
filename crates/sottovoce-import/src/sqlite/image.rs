//! Builds a database's image in memory as SQLite would read it from its files: rolls back an interrupted transaction,
//! and applies the write-ahead log. No plain copy gets a name.

mod journal;
mod page;
mod wal;

use std::io::{self, Read};
use std::path::Path;

use sottovoce::{Error, Result};

use self::page::LARGEST;
use crate::source::{Bytes, Folder, SourceFile};

/// The bytes that are read at a time.
const PIECE: usize = 1 << 18;

/// The format versions in the first page. 2 means that the database has a write-ahead log.
const VERSIONS: std::ops::Range<usize> = 18..20;

/// Reads a database and the files beside it, as of one moment. `None` if it changed while it was read.
pub(super) fn read(folder: &Folder, file: &str, original: &SourceFile) -> Result<Option<Bytes>> {
    let path = folder.path().join(file);
    let mut image = bytes(original, &path)?;
    let beside = |ending: &str| -> Result<Bytes> {
        match folder.open(&format!("{file}{ending}"))? {
            Some(source) => bytes(&source, &path),
            None => Ok(Bytes::default()),
        }
    };
    let (wal, journal) = (beside("-wal")?, beside("-journal")?);
    let is_same = is_same(original, &image);
    if !is_same.map_err(|error| Error::io("read the file", &path, error))? {
        return Ok(None);
    }
    if !journal::roll_back(&mut image, &journal) {
        let reason = "a change of several databases was interrupted: open it with SQLite first";
        return Err(Error::NotImportable { path, reason });
    }
    wal::apply(&mut image, &wal);
    // A database in memory has no write-ahead log.
    if let Some(versions) = image.get_mut(VERSIONS)
        && versions.contains(&2)
    {
        versions.fill(1);
    }
    Ok(Some(image))
}

/// All bytes of a file.
fn bytes(source: &SourceFile, path: &Path) -> Result<Bytes> {
    let read = source.rewound().and_then(|_| source.contents(LARGEST));
    let read = read.map_err(|error| Error::io("read the file", path, error))?;
    read.ok_or_else(|| Error::NotImportable { path: path.into(), reason: "it is over 1 GiB" })
}

/// Whether a file still has these bytes.
fn is_same(source: &SourceFile, image: &[u8]) -> io::Result<bool> {
    let (mut file, mut piece) = (source.rewound()?, vec![0; PIECE]);
    for expected in image.chunks(PIECE) {
        let (read, _) = piece.split_at_mut(expected.len());
        match file.read_exact(read) {
            Ok(()) if read == expected => {}
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
            _ => return Ok(false),
        }
    }
    Ok(file.take(1).read_to_end(&mut piece)? == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Folder;
    use proptest::prelude::*;
    use rusqlite::{Connection, MAIN_DB};

    fn read_all(folder: &Path) -> Option<Vec<String>> {
        let blobs = Folder::named(folder).unwrap();
        let original = blobs.open("a.db").unwrap().unwrap();
        let image = read(&blobs, "a.db", &original).ok()?.unwrap();
        let mut connection = Connection::open_in_memory().unwrap();
        connection.deserialize_read_exact(MAIN_DB, &image[..], image.len(), true).unwrap();
        Some(rows(&connection))
    }

    /// The contents of the database if it is sound, or else its problems.
    fn rows(connection: &Connection) -> Vec<String> {
        let read = || -> rusqlite::Result<Vec<String>> {
            let check = connection.query_row("PRAGMA integrity_check", (), |row| row.get(0))?;
            let mut all = connection.prepare("SELECT x FROM t ORDER BY rowid")?;
            let rows = all.query_map((), |row| row.get(0))?;
            std::iter::once(Ok(check)).chain(rows).collect()
        };
        read().unwrap_or_else(|error| vec![error.to_string()])
    }

    fn copy(from: &Path) -> tempfile::TempDir {
        let to = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
        }
        to
    }

    #[test]
    fn what_was_written_ahead_is_read_as_sqlite_reads_it() {
        for size in [512, 4096, 65_536] {
            let folder = tempfile::tempdir().unwrap();
            let writing = Connection::open(folder.path().join("a.db")).unwrap();
            writing.pragma_update(None, "page_size", size).unwrap();
            writing.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x);").unwrap();
            for round in 0..30 {
                let words = format!("{round} {}", "words ".repeat(900));
                writing.execute("INSERT INTO t VALUES (?1)", [words]).unwrap();
                match round {
                    10 => writing.execute_batch("PRAGMA wal_checkpoint(RESTART)").unwrap(),
                    20 => writing.execute_batch("DELETE FROM t WHERE rowid < 9; VACUUM").unwrap(),
                    _ => {}
                }
                let there = copy(folder.path());
                let read = read_all(there.path()).unwrap();
                assert_eq!((read[0].as_str(), &read), ("ok", &rows(&writing)), "{size} {round}");
                // Wherever the log is cut, its complete part counts. SQLite reads the same.
                let log = there.path().join("a.db-wal");
                let bytes = std::fs::read(&log).unwrap();
                std::fs::write(&log, bytes.get(..bytes.len() * 2 / 3).unwrap()).unwrap();
                let _ = std::fs::remove_file(there.path().join("a.db-shm"));
                let ours = read_all(there.path());
                let sqlite = Connection::open(there.path().join("a.db")).unwrap();
                assert_eq!(ours.unwrap(), rows(&sqlite), "{size} {round}");
            }
        }
    }

    #[test]
    fn what_an_interrupted_transaction_changed_is_taken_back() {
        for size in [512, 4096, 65_536] {
            let folder = tempfile::tempdir().unwrap();
            let mut writing = Connection::open(folder.path().join("a.db")).unwrap();
            writing.pragma_update(None, "page_size", size).unwrap();
            writing
                .execute_batch("PRAGMA cache_size = 1; PRAGMA cache_spill = 1; CREATE TABLE t (x);")
                .unwrap();
            for round in 0..20 {
                let words = format!("{round} {}", "words ".repeat(900));
                writing.execute("INSERT INTO t VALUES (?1)", [words]).unwrap();
            }
            let before = rows(&writing);
            assert_eq!((before.len(), before[0].as_str()), (21, "ok"));
            let transaction = writing.transaction().unwrap();
            transaction.execute("UPDATE t SET x = x || 'more' || hex(zeroblob(4000))", ()).unwrap();
            transaction.execute("DELETE FROM t WHERE rowid < 5", ()).unwrap();
            let crashed = copy(folder.path());
            assert!(crashed.path().join("a.db-journal").metadata().unwrap().len() > 512);
            assert_eq!(read_all(crashed.path()).unwrap(), before, "{size}");
            // Only SQLite can judge a journal of several databases.
            let journal = crashed.path().join("a.db-journal");
            let mut bytes = std::fs::read(&journal).unwrap();
            bytes.extend([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]);
            std::fs::write(&journal, bytes).unwrap();
            assert_eq!(read_all(crashed.path()), None);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_beside_a_database_make_it_panic(
            mut image in prop::collection::vec(any::<u8>(), 0..2000),
            beside in prop::collection::vec(any::<u8>(), 0..2000),
            sector in 5..17u32,
            page in 9..17u32,
        ) {
            wal::apply(&mut image, &beside);
            journal::roll_back(&mut image, &beside);
            // The header is valid as far as it goes.
            let mut beside = beside;
            beside.resize(2000, 7);
            for (at, bytes) in [
                (0, &[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7][..]),
                (20, &(1u32 << sector).to_be_bytes()),
                (24, &(1u32 << page).to_be_bytes()),
            ] {
                beside[at..at + bytes.len()].copy_from_slice(bytes);
            }
            journal::roll_back(&mut image, &beside);
        }
    }
}
