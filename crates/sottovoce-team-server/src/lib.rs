//! A server for teams: conversations that several members share, behind a REST API.
//!
//! Contents are sealed on the members' devices, with a key for each conversation that the server never sees. The server keeps the
//! order of the sealed records, and who may read and append them. [`api`] are the bodies of requests and answers, which clients use
//! too; without the feature `server` there is nothing else.

#[cfg(feature = "server")]
mod database;
#[cfg(feature = "server")]
mod error;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "server")]
mod team;

pub use sottovoce_team_api as api;

#[cfg(feature = "server")]
pub use database::{
    Database, DatabaseOptions, Load, Outcome, Positions, RecordBatch, RecordRow, Row, Step, Value,
    open_database,
};
#[cfg(feature = "server")]
pub use error::{Error, Result};
#[cfg(feature = "tls")]
pub use server::listen_tls;
#[cfg(feature = "server")]
pub use server::{Limits, Listening, Rate, listen, listen_plain, routes, serve};
#[cfg(feature = "server")]
pub use team::{Quotas, Team, UpkeepReport};

/// The statements of the benchmark.
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod statements {
    pub use crate::database::APPEND;
    pub use crate::team::{FIND_CALLERS, digest};
}
