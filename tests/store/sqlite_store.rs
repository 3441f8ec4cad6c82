//! A store in one `SQLite` file, written with the public interface only. It proves that others can write one.

use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use sottovoce::store::{
    AddedArtifact, Artifact, ArtifactContents, ArtifactKind, ArtifactMeasure, ArtifactStore, Batch,
    DocumentId, Finding, FindingKind, NewArtifact, ReadQuery, ReadResult, StoreBackend,
    StorePolicy, StoreState,
};
use sottovoce::testing::{StoreSetup, conversation_store_contract};
use sottovoce::{Clock, ConversationStore, Error, Result, Scope, StoredMessage};
use zeroize::Zeroizing;

const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA secure_delete = ON;
    CREATE TABLE IF NOT EXISTS states (
        scope TEXT PRIMARY KEY, last INTEGER NOT NULL, revision INTEGER NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS messages (
        scope TEXT, seq INTEGER, at INTEGER NOT NULL, json BLOB NOT NULL,
        PRIMARY KEY (scope, seq)) STRICT;
    CREATE INDEX IF NOT EXISTS by_time ON messages (scope, at, seq);
    CREATE TABLE IF NOT EXISTS forgotten (scope TEXT, first INTEGER, last INTEGER) STRICT;
    CREATE TABLE IF NOT EXISTS documents (
        scope TEXT, name TEXT, bytes BLOB NOT NULL, PRIMARY KEY (scope, name)) STRICT;
    CREATE TABLE IF NOT EXISTS artifacts (
        scope TEXT, id TEXT, json BLOB NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (scope, id)) STRICT;
";

/// A conversation in an `SQLite` file. Several processes may use the file at once.
#[derive(Debug)]
pub(crate) struct SqliteStore {
    scope: Arc<Scope>,
    name: String,
    clock: Arc<dyn Clock>,
    policy: StorePolicy,
    connection: Mutex<Connection>,
}

fn failed(error: rusqlite::Error) -> Error {
    Error::host("SQLite", error)
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::host("JSON", error)
}

/// `SQLite` has no unsigned numbers.
fn number(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

fn back(number: i64) -> u64 {
    number.unsigned_abs()
}

impl SqliteStore {
    pub(crate) fn open(
        file: &Path,
        scope: Scope,
        clock: Arc<dyn Clock>,
        policy: StorePolicy,
    ) -> Result<Self> {
        let connection = Connection::open(file).map_err(failed)?;
        connection.busy_timeout(Duration::from_secs(5)).map_err(failed)?;
        connection.execute_batch(SCHEMA).map_err(failed)?;
        let (name, connection) = (format!("{scope:?}"), Mutex::new(connection));
        Ok(Self { scope: Arc::new(scope), name, clock, policy, connection })
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_in(&self, connection: &Connection) -> rusqlite::Result<StoreState> {
        let (last, revision) = connection
            .query_row("SELECT last, revision FROM states WHERE scope = ?", [&self.name], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()?
            .unwrap_or((0, 0));
        let newest: Option<i64> = connection.query_row(
            "SELECT max(at) FROM messages WHERE scope = ?",
            [&self.name],
            |row| row.get(0),
        )?;
        let newest =
            newest.and_then(|at| Timestamp::from_nanosecond(i128::from(at) * 1_000_000).ok());
        let mut ranges = connection.prepare("SELECT first, last FROM forgotten WHERE scope = ?")?;
        let ranges = ranges.query_map([&self.name], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let ranges: Vec<(i64, i64)> = ranges.collect::<rusqlite::Result<_>>()?;
        let ranges = ranges.into_iter().map(|(first, last)| back(first)..=back(last));
        Ok(StoreState::new(back(last), back(revision), newest).with_forgotten(ranges))
    }

    /// The message of a row, or what is wrong with it.
    fn message(
        &self,
        row: &Row<'_>,
    ) -> rusqlite::Result<std::result::Result<StoredMessage, Finding>> {
        let (seq, at): (i64, i64) = (row.get(0)?, row.get(1)?);
        let json: Zeroizing<Vec<u8>> = Zeroizing::new(row.get(2)?);
        let place = Timestamp::from_nanosecond(i128::from(at) * 1_000_000).ok();
        let message = place.zip(serde_json::from_slice(&json).ok()).and_then(|(at, message)| {
            StoredMessage::from_parts(&self.scope, back(seq), at, message).ok()
        });
        Ok(message.ok_or_else(|| Finding::about(FindingKind::BadRecord, back(seq), back(seq))))
    }

    fn read_now(&self, query: &ReadQuery, skip: usize) -> rusqlite::Result<ReadResult> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        let state = self.state_in(&transaction)?;
        // The first millisecond at or after a time.
        let from = |at: Timestamp| {
            let at = at.as_nanosecond();
            i64::try_from(-(-at).div_euclid(1_000_000)).unwrap_or(i64::MAX)
        };
        let (condition, first, last) = match query {
            ReadQuery::Tail(n) => {
                let n = i64::try_from(*n).unwrap_or(i64::MAX);
                let skip = i64::try_from(skip).unwrap_or(i64::MAX);
                ("true ORDER BY at DESC, seq DESC LIMIT ?2 OFFSET ?3", n, skip)
            }
            ReadQuery::Seqs(seqs) => {
                let (first, last) = (number(*seqs.start()), number(*seqs.end()));
                ("seq BETWEEN ?2 AND ?3 ORDER BY at DESC, seq DESC", first, last)
            }
            ReadQuery::Times(times) => {
                let (first, end) = (from(times.start), from(times.end));
                ("at >= ?2 AND at < ?3 ORDER BY at DESC, seq DESC", first, end)
            }
        };
        let select = format!("SELECT seq, at, json FROM messages WHERE scope = ?1 AND {condition}");
        let mut rows = transaction.prepare(&select)?;
        let rows = rows.query_map(params![self.name, first, last], |row| self.message(row))?;
        let (mut messages, mut findings) = (Vec::new(), Vec::new());
        for row in rows {
            match row? {
                Ok(message) => messages.push(Arc::new(message)),
                Err(finding) => findings.push(finding),
            }
        }
        messages.reverse();
        Ok(ReadResult::new(messages, state.last_seq).with_skipped(findings))
    }

    /// One transaction: after a crash, all of it or nothing exists. `None` for another revision.
    fn commit_now(&self, batch: &Batch) -> rusqlite::Result<Option<StoreState>> {
        let mut connection = self.connection();
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let before = self.state_in(&change)?;
        if before.revision != batch.expected_revision() {
            return Ok(None);
        }
        for (id, bytes) in batch.documents() {
            let name = id.to_string();
            match bytes {
                Some(bytes) => change.execute(
                    "INSERT OR REPLACE INTO documents VALUES (?, ?, ?)",
                    params![self.name, name, bytes],
                )?,
                None => change.execute(
                    "DELETE FROM documents WHERE scope = ? AND name = ?",
                    params![self.name, name],
                )?,
            };
        }
        let mut last = before.last_seq;
        for stored in batch.messages() {
            let json = serde_json::to_vec(&stored.message)
                .map(Zeroizing::new)
                .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
            let at = stored.ordered_at().as_millisecond();
            let insert = "INSERT INTO messages VALUES (?, ?, ?, ?)";
            change.execute(insert, params![self.name, number(stored.seq), at, *json])?;
            last = last.max(stored.seq);
        }
        for range in batch.deletions() {
            let (first, last) = (number(*range.start()), number(*range.end()));
            let delete = "DELETE FROM messages WHERE scope = ? AND seq BETWEEN ? AND ?";
            change.execute(delete, params![self.name, first, last])?;
            let note = "INSERT INTO forgotten VALUES (?, ?, ?)";
            change.execute(note, params![self.name, first, last])?;
        }
        change.execute(
            "INSERT OR REPLACE INTO states VALUES (?, ?, ?)",
            params![self.name, number(last), number(before.revision + 1)],
        )?;
        let after = self.state_in(&change)?;
        change.commit()?;
        Ok(Some(after))
    }
}

#[async_trait]
impl StoreBackend for SqliteStore {
    fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn policy(&self) -> StorePolicy {
        self.policy
    }

    async fn state(&self) -> Result<StoreState> {
        self.state_in(&self.connection()).map_err(failed)
    }

    async fn read(&self, query: ReadQuery) -> Result<ReadResult> {
        self.read_now(&query, 0).map_err(failed)
    }

    async fn read_before(&self, skip: usize, n: usize) -> Result<ReadResult> {
        self.read_now(&ReadQuery::Tail(n), skip).map_err(failed)
    }

    async fn document(&self, id: &DocumentId) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let select = "SELECT bytes FROM documents WHERE scope = ? AND name = ?";
        let name = id.to_string();
        let connection = self.connection();
        let bytes = connection.query_row(select, params![self.name, name], |row| row.get(0));
        Ok(bytes.optional().map_err(failed)?.map(Zeroizing::new))
    }

    async fn commit(&self, batch: Batch) -> Result<StoreState> {
        self.commit_now(&batch).map_err(failed)?.ok_or(Error::Conflict)
    }

    fn artifact_store(&self) -> Option<&dyn ArtifactStore> {
        Some(self)
    }
}

#[async_trait]
impl ArtifactStore for SqliteStore {
    async fn artifacts(&self) -> Result<(Vec<Artifact>, Vec<Finding>)> {
        let connection = self.connection();
        let select = "SELECT json FROM artifacts WHERE scope = ? ORDER BY json ->> 'createdAt', id";
        let mut rows = connection.prepare(select).map_err(failed)?;
        let rows = rows.query_map([&self.name], |row| row.get::<_, Vec<u8>>(0)).map_err(failed)?;
        let rows: Vec<Vec<u8>> = rows.collect::<rusqlite::Result<_>>().map_err(failed)?;
        let artifacts = rows.iter().map(|json| serde_json::from_slice(json));
        Ok((artifacts.collect::<serde_json::Result<_>>().map_err(unreadable)?, Vec::new()))
    }

    async fn add_artifact(
        &self,
        new: NewArtifact,
        mut content: Box<dyn Read + Send>,
    ) -> Result<AddedArtifact> {
        let (mut bytes, mut measure) = (Zeroizing::new(Vec::new()), ArtifactMeasure::default());
        content
            .read_to_end(&mut bytes)
            .map_err(|error| Error::io("read", "the artifact", error))?;
        measure.take(&bytes);
        let artifact = measure.finish(&new, self.clock.now().timestamp())?;
        if artifact.kind != ArtifactKind::ToolResult {
            let is_same = |there: &Artifact| {
                there.sha256 == artifact.sha256 && there.kind != ArtifactKind::ToolResult
            };
            if let Some(same) = self.artifacts().await?.0.into_iter().find(is_same) {
                return Ok(AddedArtifact::new(same, true));
            }
        }
        let json = serde_json::to_vec(&artifact).map_err(unreadable)?;
        let insert = "INSERT INTO artifacts VALUES (?, ?, ?, ?)";
        let values = params![self.name, artifact.id, json, *bytes];
        self.connection().execute(insert, values).map_err(failed)?;
        Ok(AddedArtifact::new(artifact, false))
    }

    async fn open_artifact(&self, id: &str) -> Result<Option<ArtifactContents>> {
        let connection = self.connection();
        let select = "SELECT json, bytes FROM artifacts WHERE scope = ? AND id = ?";
        let row: Option<(Vec<u8>, Vec<u8>)> = connection
            .query_row(select, params![self.name, id], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
            .map_err(failed)?;
        let Some((json, bytes)) = row else { return Ok(None) };
        let artifact = serde_json::from_slice(&json).map_err(unreadable)?;
        Ok(Some(ArtifactContents::new(artifact, Cursor::new(Zeroizing::new(bytes)))))
    }

    async fn delete_artifacts(&self, ids: &[String]) -> Result<()> {
        let connection = self.connection();
        for id in ids {
            let delete = "DELETE FROM artifacts WHERE scope = ? AND id = ?";
            connection.execute(delete, params![self.name, id]).map_err(failed)?;
        }
        Ok(())
    }
}

impl ConversationStore for SqliteStore {}

#[tokio::test]
async fn a_store_on_sqlite_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let open = async |setup: StoreSetup| {
        let StoreSetup { name, scope, clock, policy, .. } = setup;
        let file = folder.path().join(format!("{name}.db"));
        let store = SqliteStore::open(&file, scope, clock, policy)?;
        Ok(Arc::new(store) as Arc<dyn ConversationStore>)
    };
    conversation_store_contract(open).await.unwrap();
}
