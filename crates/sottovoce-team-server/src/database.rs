//! The database: a small trait, and two engines of it

mod connect;
mod open;
mod options;
mod postgres;
mod schema;
mod sqlite;
mod value;

use async_trait::async_trait;

use crate::error::Result;
pub use open::open_database;
pub use options::DatabaseOptions;
pub use postgres::APPEND;
pub use value::{Row, Value};

/// One statement of a transaction. The text is always a constant of this crate: what requests bring are values.
#[derive(Debug, Clone)]
pub struct Step {
    /// The statement, with parameters `$1`, `$2`, …, `IN_LIST($1)` for membership in a list, and `EACH($1)` for a table of the values
    /// of a list, whose column is `value`.
    pub sql: &'static str,
    /// The values of its parameters.
    pub values: Vec<Value>,
    /// Whether the transaction is undone if the statement returns no row.
    pub must: bool,
}

impl Step {
    /// How a transaction ended of which it was the only statement, with these rows.
    fn alone(&self, rows: Vec<Row>) -> Outcome {
        match self.must && rows.is_empty() {
            true => Outcome::Refused(0),
            false => Outcome::Done(vec![rows]),
        }
    }
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is durable. The rows of each step.
    Done(Vec<Vec<Row>>),
    /// It was undone, because this step, counted from 0, had to return a row and did not.
    Refused(usize),
}

/// A record to append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordRow {
    /// The 32 bytes of its identifier.
    pub rid: Vec<u8>,
    /// The number of its kind.
    pub kind: i64,
    /// Its sealed contents. Without bytes: it is forgotten already.
    pub sealed: Vec<u8>,
    /// The identifiers that a forgetting names, one after the other.
    pub forgets: Option<Vec<u8>>,
}

/// Records to append to one conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordBatch {
    /// The digest of the token by which they are appended, 32 bytes.
    pub token: Vec<u8>,
    /// The number of the least level that the token's member needs for the conversation.
    pub level: i64,
    /// The 16 bytes of the conversation's identifier.
    pub conversation: Vec<u8>,
    /// The 16 bytes of the device's identifier.
    pub device: Vec<u8>,
    /// The time in milliseconds since 1970.
    pub at: i64,
    /// The records, none twice.
    pub records: Vec<RecordRow>,
}

/// Where the records of a batch are now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Positions {
    /// The position of each record, in the order of the batch.
    pub positions: Vec<i64>,
    /// The conversation's last position.
    pub last: i64,
}

/// How busy a database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Connections in use.
    pub used: usize,
    /// The most connections.
    pub most: usize,
}

/// A database of teams. Several processes may use one at the same time.
#[async_trait]
pub trait Database: std::fmt::Debug + Send + Sync {
    /// Runs statements in one transaction. Once this returns `Done`, they are durable; after an error they may be.
    ///
    /// # Errors
    /// [`Error::Busy`](crate::Error::Busy), [`Error::Unavailable`](crate::Error::Unavailable),
    /// [`Error::Conflict`](crate::Error::Conflict) if a key exists already, and [`Error::Database`](crate::Error::Database).
    async fn transact(&self, steps: Vec<Step>) -> Result<Outcome>;

    /// Appends records, in one transaction with the steps, which run after it. A record whose identifier the conversation has
    /// already stays as it is. The others get the next positions, which become visible in order and without holes.
    /// `None`, and nothing happens, if there is no such conversation, or the token does not allow it at the time of the batch.
    ///
    /// # Errors
    /// As those of `transact`.
    async fn append(&self, batch: &RecordBatch, steps: &[Step]) -> Result<Option<Positions>>;

    /// How busy it is.
    fn load(&self) -> Load;
}
