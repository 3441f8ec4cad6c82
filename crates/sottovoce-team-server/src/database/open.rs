//! Opens a database by its address

use std::sync::Arc;

use crate::database::Database;
use crate::database::options::DatabaseOptions;
use crate::database::postgres::Postgres;
use crate::database::sqlite::Sqlite;
use crate::error::{Error, Result};

/// Opens a database and brings its tables up to date: PostgreSQL at `postgres://USER:PASSWORD@HOST:PORT/NAME`, or else the SQLite
/// file at this path, which is created if it does not exist. A PostgreSQL beyond this machine must speak TLS with a certificate
/// that the system trusts, unless the address says `sslmode=disable`.
///
/// # Errors
/// [`Error::DatabaseAddress`], [`Error::Unavailable`], [`Error::Newer`] and [`Error::Database`].
pub async fn open_database(address: &str, options: DatabaseOptions) -> Result<Arc<dyn Database>> {
    if address.starts_with("postgres://") || address.starts_with("postgresql://") {
        return Ok(Arc::new(Postgres::open(address, options).await?));
    }
    if address.is_empty() || address.contains("://") {
        return Err(Error::DatabaseAddress {
            reason: "is neither a postgres:// URL nor the path of a file",
        });
    }
    Ok(Arc::new(Sqlite::open(address.into(), options).await?))
}
