//! One SQLite file

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::types::ValueRef;
use rusqlite::{
    Connection, OptionalExtension, ToSql, Transaction, TransactionBehavior, ffi, params,
};
use sottovoce_net::lock;
use tokio::sync::Semaphore;

use crate::database::options::DatabaseOptions;
use crate::database::schema::{Change, MIGRATIONS};
use crate::database::value::{Row, Value};
use crate::database::{Database, Load, Outcome, Positions, RecordBatch, RecordRow, Step};
use crate::error::{Error, Result};

/// How many requests wait for the connection before others are refused.
const WAITING: usize = 64;

/// A SQLite database. One connection serves all: what one transaction takes is well below a millisecond.
#[derive(Debug)]
pub(super) struct Sqlite {
    connection: Arc<Mutex<Connection>>,
    turns: Semaphore,
    wait: Duration,
}

impl Sqlite {
    pub(super) async fn open(path: PathBuf, options: DatabaseOptions) -> Result<Self> {
        let opening = tokio::task::spawn_blocking(move || {
            create(&path)?;
            let mut connection = Connection::open(&path).map_err(failed)?;
            connection.busy_timeout(options.statement).map_err(failed)?;
            rusqlite::vtab::array::load_module(&connection).map_err(failed)?;
            // `secure_delete` overwrites what is deleted: what was forgotten is not found in free pages.
            let pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
                           PRAGMA secure_delete = ON; PRAGMA wal_autocheckpoint = 256;";
            connection.execute_batch(pragmas).map_err(failed)?;
            migrate(&mut connection)?;
            Ok::<_, Error>(connection)
        });
        let connection = opening.await.map_err(|_| Error::Unavailable)??;
        Ok(Self {
            connection: Arc::new(Mutex::new(connection)),
            turns: Semaphore::new(WAITING),
            wait: options.wait,
        })
    }

    /// Runs something with the connection, on a thread that may block. It ends even if nobody waits for it any more.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let turn = tokio::time::timeout(self.wait, self.turns.acquire()).await;
        let _turn = turn.map_err(|_| Error::Busy)?.map_err(|_| Error::Unavailable)?;
        let connection = Arc::clone(&self.connection);
        let working = tokio::task::spawn_blocking(move || work(&mut lock(&connection)));
        working.await.map_err(|_| Error::Unavailable)?
    }
}

#[async_trait]
impl Database for Sqlite {
    async fn transact(&self, steps: Vec<Step>) -> Result<Outcome> {
        self.with(move |connection| {
            if let [step] = steps.as_slice()
                && step.sql.starts_with("SELECT")
            {
                return Ok(step.alone(run(connection, step)?));
            }
            let transaction = begin(connection)?;
            let mut results = Vec::with_capacity(steps.len());
            for (at, step) in steps.iter().enumerate() {
                let rows = run(&transaction, step)?;
                if step.must && rows.is_empty() {
                    transaction.rollback().map_err(failed)?;
                    return Ok(Outcome::Refused(at));
                }
                results.push(rows);
            }
            transaction.commit().map_err(failed)?;
            Ok(Outcome::Done(results))
        })
        .await
    }

    async fn append(&self, batch: &RecordBatch, steps: &[Step]) -> Result<Option<Positions>> {
        let (batch, steps) = (batch.clone(), steps.to_vec());
        self.with(move |connection| {
            let transaction = begin(connection)?;
            let positions = append(&transaction, &batch)?;
            if positions.is_some() {
                for step in &steps {
                    run(&transaction, step)?;
                }
            }
            transaction.commit().map_err(failed)?;
            if !steps.is_empty() {
                // Something was forgotten. The log would keep it until it is written over. If another process reads
                // now, a later checkpoint does it.
                let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
                drop(connection.query_row(checkpoint, [], |_| Ok(())));
            }
            Ok(positions)
        })
        .await
    }

    fn load(&self) -> Load {
        Load { used: WAITING.saturating_sub(self.turns.available_permits()), most: WAITING }
    }
}

/// Creates the file if it does not exist, for its owner alone. SQLite gives its other files the same mode.
fn create(path: &Path) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let wrong =
        |error: std::io::Error| Error::File { path: path.to_owned(), reason: error.to_string() };
    options.open(path).map(drop).map_err(wrong)
}

/// Brings the tables up to date. Processes that start at once wait for each other.
fn migrate(connection: &mut Connection) -> Result<()> {
    let transaction = begin(connection)?;
    let create = "CREATE TABLE IF NOT EXISTS schema_version (version bigint PRIMARY KEY)";
    transaction.execute_batch(create).map_err(failed)?;
    let newest = "SELECT coalesce(max(version), 0) FROM schema_version";
    let found: i64 = transaction.query_row(newest, [], |row| row.get(0)).map_err(failed)?;
    let known = MIGRATIONS.len() as i64;
    if found > known {
        return Err(Error::Newer { found, known });
    }
    for (version, changes) in (1_i64..).zip(MIGRATIONS).skip(found as usize) {
        for change in changes {
            if let Change::Both(sql) | Change::Sqlite(sql) = change {
                transaction.execute_batch(sql).map_err(failed)?;
            }
        }
        transaction.execute("INSERT INTO schema_version VALUES (?1)", [version]).map_err(failed)?;
    }
    transaction.commit().map_err(failed)
}

fn begin(connection: &mut Connection) -> Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)
}

fn run(connection: &Connection, step: &Step) -> Result<Vec<Row>> {
    let sql =
        step.sql.replace("IN_LIST(", "IN rarray(").replace("EACH(", "rarray(").replace('$', "?");
    let mut statement = connection.prepare(&sql).map_err(failed)?;
    let columns = statement.column_count();
    let values = rusqlite::params_from_iter(step.values.iter().map(bound));
    let mut rows = statement.query(values).map_err(failed)?;
    let mut results = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let value = |column| match row.get_ref(column) {
            Ok(ValueRef::Integer(number)) => Ok(Value::Int(number)),
            Ok(ValueRef::Blob(bytes)) => Ok(Value::Bytes(bytes.to_vec())),
            Ok(_) => Ok(Value::Null),
            Err(error) => Err(failed(error)),
        };
        results.push(Row((0..columns).map(value).collect::<Result<_>>()?));
    }
    Ok(results)
}

fn append(transaction: &Transaction<'_>, batch: &RecordBatch) -> Result<Option<Positions>> {
    let conversation = &batch.conversation;
    let select = "SELECT last FROM conversation c WHERE id = ?1 AND EXISTS (\
                  SELECT 1 FROM token t JOIN grant_ g ON g.member = t.member \
                  WHERE t.sha256 = ?2 AND t.expires > ?3 AND g.conversation = c.id AND g.level >= ?4)";
    let mut select = transaction.prepare(select).map_err(failed)?;
    let values = params![conversation, batch.token, batch.at, batch.level];
    let before: Option<i64> =
        select.query_row(values, |row| row.get(0)).optional().map_err(failed)?;
    let Some(before) = before else { return Ok(None) };
    let find = "SELECT pos FROM record WHERE conversation = ?1 AND rid = ?2";
    let mut find = transaction.prepare(find).map_err(failed)?;
    let insert = "INSERT INTO record (conversation, pos, at, size, kind, rid, device, sealed, forgets) \
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let mut insert = transaction.prepare(insert).map_err(failed)?;
    let (mut last, mut bytes, at) = (before, 0, batch.at);
    let mut positions = Vec::with_capacity(batch.records.len());
    for record in &batch.records {
        let known = find.query_row(params![conversation, record.rid], |row| row.get(0)).optional();
        if let Some(known) = known.map_err(failed)? {
            positions.push(known);
            continue;
        }
        last += 1;
        let size = record.sealed.len() as i64;
        bytes += size;
        let (RecordRow { rid, kind, sealed, forgets }, device) = (record, &batch.device);
        insert
            .execute(params![conversation, last, at, size, kind, rid, device, sealed, forgets])
            .map_err(failed)?;
        positions.push(last);
    }
    if last > before {
        let update =
            "UPDATE conversation SET last = ?2, bytes = bytes + ?3, changed = ?4 WHERE id = ?1";
        let mut update = transaction.prepare(update).map_err(failed)?;
        update.execute(params![conversation, last, bytes, batch.at]).map_err(failed)?;
    }
    Ok(Some(Positions { positions, last }))
}

fn bound(value: &Value) -> Box<dyn ToSql + '_> {
    match value {
        Value::Null => Box::new(rusqlite::types::Null),
        Value::Int(number) => Box::new(number),
        Value::Bytes(bytes) => Box::new(bytes),
        Value::List(list) => Box::new(Rc::new(
            list.iter().cloned().map(rusqlite::types::Value::Blob).collect::<Vec<_>>(),
        )),
    }
}

/// What an error of SQLite means. Its text is not kept: it may quote values.
fn failed(error: rusqlite::Error) -> Error {
    let rusqlite::Error::SqliteFailure(failure, _) = &error else {
        return Error::Database {
            code: "a statement or a value does not fit the tables".to_owned(),
        };
    };
    match failure.extended_code {
        ffi::SQLITE_CONSTRAINT_UNIQUE | ffi::SQLITE_CONSTRAINT_PRIMARYKEY => {
            Error::Conflict { what: "it exists already" }
        }
        code => match code & 0xff {
            ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => Error::Busy,
            ffi::SQLITE_CANTOPEN | ffi::SQLITE_IOERR | ffi::SQLITE_FULL => Error::Unavailable,
            _ => Error::Database { code: code.to_string() },
        },
    }
}
