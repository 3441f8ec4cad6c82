//! The HTTP server

mod handler;
mod limits;
mod memory;
mod metrics;
mod operations;
mod query;
mod rates;
mod reply;
mod routes;
mod watch;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sottovoce_connections::{ConnectionLimits, Listener, accept};
use tokio_util::sync::CancellationToken;

use crate::api::Secret;
use crate::error::{Error, Result};
use crate::team::Team;
use handler::Handler;
pub use limits::{Limits, Rate};
pub use routes::routes;

/// A server that is bound to its address but does not answer yet.
#[derive(Debug)]
pub struct Listening(Listener);

impl Listening {
    /// The address it listens on, with the actual port if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }
}

/// Binds an address. The server speaks plain HTTP: beyond one machine, a proxy in front of it speaks TLS.
///
/// # Errors
/// [`Error::Address`].
pub async fn listen(address: SocketAddr) -> Result<Listening> {
    let bound = Listener::bind(address).await;
    Ok(Listening(bound.map_err(|source| Error::Address { address, source })?))
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
    let connections = ConnectionLimits {
        connections: limits.connections,
        head: limits.head,
        unread: limits.unread,
    };
    let answering = Arc::clone(&handler);
    let answer = move |request, client| Arc::clone(&answering).answer(request, client);
    let graceful = tokio::select! {
        graceful = accept(listening.0, connections, answer, &stop) => graceful,
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
