//! The HTTP server

mod accept;
mod body;
mod connections;
mod handler;
mod limits;
mod metrics;
mod operations;
mod query;
mod rates;
mod reply;
mod routes;
mod socket;
mod watch;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::api::Secret;
use crate::error::{Error, Result};
use crate::team::Team;
use handler::Handler;
pub use limits::{Limits, Rate};
pub use routes::routes;

/// A server that is bound to its address but does not answer yet.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listening {
    /// The address it listens on, with the actual port if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Binds an address. The server speaks plain HTTP: beyond one machine, a proxy in front of it speaks TLS.
///
/// # Errors
/// [`Error::Address`].
pub async fn listen(address: SocketAddr) -> Result<Listening> {
    let failed = |source| Error::Address { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Listening { listener, address })
}

/// Serves until `stop` is cancelled. Requests in progress then have the grace period of the limits, and those that wait for
/// changes are answered at once. `operator` may create organisations and read the metrics.
pub async fn serve(
    listening: Listening,
    team: Team,
    operator: Option<Secret>,
    limits: Limits,
    stop: CancellationToken,
) {
    let handler = Arc::new(Handler::new(team.clone(), operator, limits, stop.clone()));
    let graceful = tokio::select! {
        graceful = accept::accept(listening.listener, Arc::clone(&handler), &stop) => graceful,
        () = handler.watch.follow(&team) => return,
        () = upkeep(&team, limits.upkeep) => return,
    };
    if tokio::time::timeout(limits.grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end in time");
    }
}

/// Does what there is to do from time to time.
async fn upkeep(team: &Team, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        match team.upkeep().await {
            Ok(report) => tracing::debug!(?report, "upkeep"),
            Err(error) => tracing::warn!(%error, "the upkeep failed, and is repeated later"),
        }
    }
}
