//! PostgreSQL

use async_trait::async_trait;
use deadpool_postgres::{GenericClient, Object, Pool, PoolError};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};

use crate::database::options::DatabaseOptions;
use crate::database::schema::{Change, LOCK, MIGRATIONS};
use crate::database::value::{Row, Value};
use crate::database::{Database, Load, Outcome, Positions, RecordBatch, Step, connect};
use crate::error::{Error, Result};

/// How often what collided with another transaction is repeated.
const ATTEMPTS: usize = 8;

/// Appends the records that are not there yet. One statement, so that it takes one round trip and no explicit transaction. The
/// update of the conversation holds its row until the commit: positions become visible in their order. Two requests with the same
/// new record do not see each other: the second one breaks the unique key, takes no positions, and is repeated.
pub const APPEND: &str = "\
WITH given AS (
  SELECT * FROM unnest($2::bytea[], $3::smallint[], $4::bytea[], $5::bytea[]) WITH ORDINALITY AS g(rid, kind, sealed, forgets, n)
), new AS (
  SELECT g.*, row_number() OVER (ORDER BY g.n) AS k FROM given g
  WHERE NOT EXISTS (SELECT 1 FROM record r WHERE r.conversation = $1 AND r.rid = g.rid)
), sums AS (
  SELECT count(*) AS n, coalesce(sum(length(sealed)), 0) AS bytes FROM new
), moved AS (
  UPDATE conversation SET last = last + (SELECT n FROM sums), bytes = bytes + (SELECT bytes FROM sums),
    changed = CASE WHEN (SELECT n FROM sums) > 0 THEN $6 ELSE changed END
  WHERE id = $1 AND EXISTS (
    SELECT 1 FROM token t JOIN grant_ g ON g.member = t.member
    WHERE t.sha256 = $8 AND t.expires > $6 AND g.conversation = $1 AND g.level >= $9
  ) RETURNING last
), added AS (
  INSERT INTO record (conversation, pos, at, size, kind, rid, device, sealed, forgets)
  SELECT $1, moved.last - (SELECT n FROM sums) + new.k, $6, length(new.sealed), new.kind, new.rid, $7, new.sealed, new.forgets
  FROM new, moved RETURNING rid, pos
), all_ AS (
  SELECT rid, pos FROM added
  UNION ALL
  SELECT r.rid, r.pos FROM record r JOIN given g ON r.rid = g.rid WHERE r.conversation = $1
)
SELECT all_.pos, (SELECT last FROM moved) FROM all_ JOIN given USING (rid) ORDER BY given.n";

/// A PostgreSQL database.
#[derive(Debug)]
pub(super) struct Postgres {
    pool: Pool,
}

impl Postgres {
    pub(super) async fn open(address: &str, options: DatabaseOptions) -> Result<Self> {
        let this = Self { pool: connect::pool(address, options)? };
        this.migrate().await?;
        Ok(this)
    }

    /// Brings the tables up to date. Servers that start at once wait for each other.
    async fn migrate(&self) -> Result<()> {
        let mut client = self.client().await?;
        let transaction = client.transaction().await.map_err(failed)?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(failed)?;
        let create = "CREATE TABLE IF NOT EXISTS schema_version (version bigint PRIMARY KEY)";
        transaction.batch_execute(create).await.map_err(failed)?;
        let row = transaction
            .query_one("SELECT coalesce(max(version), 0) FROM schema_version", &[])
            .await
            .map_err(failed)?;
        let found: i64 = row.try_get(0).map_err(failed)?;
        let known = MIGRATIONS.len() as i64;
        if found > known {
            return Err(Error::Newer { found, known });
        }
        for (version, changes) in (1_i64..).zip(MIGRATIONS).skip(found as usize) {
            for change in changes {
                if let Change::Both(sql) | Change::Postgres(sql) = change {
                    transaction.batch_execute(sql).await.map_err(failed)?;
                }
            }
            let insert = "INSERT INTO schema_version VALUES ($1)";
            transaction.execute(insert, &[&version]).await.map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    }

    async fn client(&self) -> Result<Object> {
        self.pool.get().await.map_err(|error| match error {
            PoolError::Timeout(deadpool_postgres::TimeoutType::Wait) => Error::Busy,
            PoolError::Backend(error) => failed(error),
            _ => Error::Unavailable,
        })
    }

    async fn try_transact(&self, steps: &[Step]) -> Result<Outcome> {
        let mut client = self.client().await?;
        if let [step] = steps {
            // It is a transaction of its own.
            let rows = run(&client, step).await?;
            return Ok(step.alone(rows));
        }
        let transaction = client.transaction().await.map_err(failed)?;
        let mut results = Vec::with_capacity(steps.len());
        for (at, step) in steps.iter().enumerate() {
            let rows = run(&transaction, step).await?;
            if step.must && rows.is_empty() {
                transaction.rollback().await.map_err(failed)?;
                return Ok(Outcome::Refused(at));
            }
            results.push(rows);
        }
        transaction.commit().await.map_err(failed)?;
        Ok(Outcome::Done(results))
    }

    async fn try_append(&self, batch: &RecordBatch, steps: &[Step]) -> Result<Option<Positions>> {
        let mut client = self.client().await?;
        if steps.is_empty() {
            return append(&client, batch).await;
        }
        let transaction = client.transaction().await.map_err(failed)?;
        let positions = append(&transaction, batch).await?;
        if positions.is_some() {
            for step in steps {
                run(&transaction, step).await?;
            }
        }
        transaction.commit().await.map_err(failed)?;
        Ok(positions)
    }
}

#[async_trait]
impl Database for Postgres {
    async fn transact(&self, steps: Vec<Step>) -> Result<Outcome> {
        for _ in 1..ATTEMPTS {
            match self.try_transact(&steps).await {
                Err(error) if is_collision(&error) => {}
                other => return other,
            }
        }
        self.try_transact(&steps)
            .await
            .map_err(|error| if is_collision(&error) { Error::Busy } else { error })
    }

    async fn append(&self, batch: &RecordBatch, steps: &[Step]) -> Result<Option<Positions>> {
        for _ in 0..ATTEMPTS {
            match self.try_append(batch, steps).await {
                // Another request has just appended one of the records.
                Err(Error::Conflict { .. }) => {}
                Err(error) if is_collision(&error) => {}
                other => return other,
            }
        }
        Err(Error::Busy)
    }

    fn load(&self) -> Load {
        let status = self.pool.status();
        Load { used: status.size.saturating_sub(status.available), most: status.max_size }
    }
}

async fn run(client: &impl GenericClient, step: &Step) -> Result<Vec<Row>> {
    let sql = step.sql.replace("IN_LIST(", "= ANY(");
    let sql = sql.replace("EACH($1)", "(SELECT unnest($1::bytea[]) AS value)");
    let statement = client.prepare_cached(&sql).await.map_err(failed)?;
    let values: Vec<&(dyn ToSql + Sync)> =
        step.values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
    let rows = client.query(&statement, &values).await.map_err(failed)?;
    rows.iter().map(read).collect()
}

async fn append(client: &impl GenericClient, batch: &RecordBatch) -> Result<Option<Positions>> {
    let statement = client.prepare_cached(APPEND).await.map_err(failed)?;
    let records = &batch.records;
    let rids: Vec<&[u8]> = records.iter().map(|record| record.rid.as_slice()).collect();
    let kinds: Vec<i16> = records.iter().map(|record| record.kind as i16).collect();
    let sealed: Vec<&[u8]> = records.iter().map(|record| record.sealed.as_slice()).collect();
    let forgets: Vec<Option<&[u8]>> =
        records.iter().map(|record| record.forgets.as_deref()).collect();
    let RecordBatch { conversation, at, device, token, .. } = batch;
    let level = batch.level as i16;
    let values: [&(dyn ToSql + Sync); 9] =
        [conversation, &rids, &kinds, &sealed, &forgets, at, device, token, &level];
    let rows = client.query(&statement, &values).await.map_err(failed)?;
    let mut positions = Positions { positions: Vec::with_capacity(rows.len()), last: 0 };
    for row in &rows {
        let Some(last) = row.try_get::<_, Option<i64>>(1).map_err(failed)? else { return Ok(None) };
        positions.last = last;
        positions.positions.push(row.try_get(0).map_err(failed)?);
    }
    // Without a conversation, nothing was inserted.
    Ok((rows.len() == records.len()).then_some(positions))
}

fn read(row: &tokio_postgres::Row) -> Result<Row> {
    let column = |(at, column): (usize, &tokio_postgres::Column)| {
        let value = match *column.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(at).map(Value::from),
            Type::INT4 => row.try_get::<_, Option<i32>>(at).map(|n| n.map(i64::from).into()),
            Type::INT2 => row.try_get::<_, Option<i16>>(at).map(|n| n.map(i64::from).into()),
            _ => row.try_get::<_, Option<Vec<u8>>>(at).map(Value::from),
        };
        value.map_err(failed)
    };
    row.columns().iter().enumerate().map(column).collect::<Result<_>>().map(Row)
}

impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(number) => match *kind {
                Type::INT2 => i16::try_from(*number)?.to_sql(kind, out),
                Type::INT4 => i32::try_from(*number)?.to_sql(kind, out),
                _ => number.to_sql(kind, out),
            },
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
            Self::List(list) => list.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::INT2 | Type::INT4 | Type::INT8 | Type::BYTEA | Type::BYTEA_ARRAY)
    }

    to_sql_checked!();
}

/// What an error of PostgreSQL means. Its text is not kept: it may quote values.
fn failed(error: tokio_postgres::Error) -> Error {
    let Some(code) = error.code() else {
        if error.is_closed()
            || error.as_db_error().is_none()
                && std::error::Error::source(&error)
                    .is_some_and(|source| source.is::<std::io::Error>())
        {
            return Error::Unavailable;
        }
        return Error::Database { code: "the answer cannot be read".to_owned() };
    };
    match (code, code.code().get(..2)) {
        (&SqlState::UNIQUE_VIOLATION, _) => Error::Conflict { what: "it exists already" },
        (&SqlState::QUERY_CANCELED, _) | (_, Some("53")) => Error::Busy,
        // Connections, and a server that shuts down, starts or was killed.
        (_, Some("08" | "57")) => Error::Unavailable,
        _ => Error::Database { code: code.code().to_owned() },
    }
}

/// Whether a transaction was undone for the sake of another one: a deadlock, or a change that it did not see.
fn is_collision(error: &Error) -> bool {
    matches!(error, Error::Database { code } if code.starts_with("40"))
}
