//! A team's affairs: what each request does to the database and the object store

mod artifact;
mod audit;
mod caller;
mod conversation;
mod export;
mod grant;
mod invitation;
mod lookup;
mod member;
mod object;
mod organisation;
mod pack;
mod record;
mod text;
mod token;
mod upkeep;

use std::sync::Arc;

use jiff::Timestamp;
use sottovoce::{Clock, SystemClock};
use sottovoce_remote::Remote;
use tokio::sync::Mutex;

use crate::database::{Database, Outcome, Row, Step, Value};
use crate::error::{Error, Result};
use crate::team::lookup::Lookups;
pub use caller::digest;
pub(crate) use caller::{Caller, Needs, Permit};
pub(crate) use export::Export;
pub use lookup::FIND_CALLERS;
pub(crate) use member::check_profile;
pub use upkeep::UpkeepReport;

/// What organisations may store, and for how long.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Quotas {
    /// The most bytes of records and artifacts of an organisation: 10 GiB.
    pub bytes: u64,
    /// The most members of an organisation: 1,000.
    pub members: u32,
    /// The most conversations of an organisation: 10,000.
    pub conversations: u32,
    /// The most tokens of a member: 100.
    pub tokens: u32,
    /// The most open invitations of an organisation: 100.
    pub invitations: u32,
    /// After how many days records move from the database into the object store: 30.
    pub pack_after_days: u32,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            bytes: 10 << 30,
            members: 1_000,
            conversations: 10_000,
            tokens: 100,
            invitations: 100,
            pack_after_days: 30,
        }
    }
}

/// The organisations of one database and one object store. It has no state of its own: several processes may serve the same.
#[derive(Debug, Clone)]
pub struct Team {
    database: Arc<dyn Database>,
    objects: Arc<dyn Remote>,
    clock: Arc<dyn Clock>,
    quotas: Quotas,
    lookups: Arc<Lookups>,
    /// Who may rewrite packs next, and who does.
    rewriting: Arc<(Mutex<()>, Mutex<()>)>,
}

impl Team {
    /// Organisations whose records are in this database, and whose artifacts and packs are in this object store.
    pub fn new(database: Arc<dyn Database>, objects: Arc<dyn Remote>) -> Self {
        Self {
            database,
            objects,
            clock: Arc::new(SystemClock),
            quotas: Quotas::default(),
            lookups: Arc::default(),
            rewriting: Arc::default(),
        }
    }

    /// Uses another clock.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Replaces the quotas.
    #[must_use]
    pub fn quotas(self, quotas: Quotas) -> Self {
        Self { quotas, ..self }
    }

    /// The most bytes that an organisation stores.
    pub(crate) fn quota(&self) -> u64 {
        self.quotas.bytes
    }

    pub(crate) fn database(&self) -> &dyn Database {
        &*self.database
    }

    /// The time in milliseconds since 1970.
    fn now(&self) -> i64 {
        self.clock.now().timestamp().as_millisecond()
    }

    /// Runs statements in one transaction. What is refused becomes the error that belongs to the step.
    async fn run(&self, steps: Vec<(Step, Option<Error>)>) -> Result<Vec<Vec<Row>>> {
        let (steps, mut errors): (Vec<_>, Vec<_>) = steps.into_iter().unzip();
        match self.database.transact(steps).await? {
            Outcome::Done(rows) => Ok(rows),
            Outcome::Refused(at) => Err(errors
                .get_mut(at)
                .and_then(Option::take)
                .unwrap_or(Error::Conflict { what: "it has just changed" })),
        }
    }

    /// The rows of one statement.
    async fn rows(&self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Row>> {
        let rows = self.run(vec![step(sql, values)]).await?;
        Ok(rows.into_iter().next().unwrap_or_default())
    }
}

/// A statement that may return no row.
fn step(sql: &'static str, values: Vec<Value>) -> (Step, Option<Error>) {
    (Step { sql, values, must: false }, None)
}

/// A statement that must return a row, or else the transaction is undone with this error.
fn must(sql: &'static str, values: Vec<Value>, error: Error) -> (Step, Option<Error>) {
    (Step { sql, values, must: true }, Some(error))
}

/// The time at this many milliseconds since 1970. A time outside the range of dates becomes the nearest one.
fn time(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(milliseconds).unwrap_or(if milliseconds < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}

/// Values of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::database::Value::from($value)),*] };
}
use values;
