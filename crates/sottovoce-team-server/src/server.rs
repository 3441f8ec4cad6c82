//! The HTTP server

mod handler;
mod limits;
mod metrics;
mod operations;
mod pages;
mod query;
mod rates;
mod reply;
mod routes;
mod watch;

use std::net::SocketAddr;
#[cfg(feature = "tls")]
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sottovoce_net::Listener;
use tokio_util::sync::CancellationToken;

use crate::api::Secret;
use crate::error::{Error, Result};
use crate::team::{Team, UpkeepReport};
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

/// Binds an address of loopback, to speak plain HTTP there.
///
/// # Errors
/// [`Error::PlainHttp`] for any other address, since tokens could be read on the way to it, and [`Error::Address`].
pub async fn listen(address: SocketAddr) -> Result<Listening> {
    match address.ip().is_loopback() {
        true => listen_plain(address).await,
        false => Err(Error::PlainHttp { address }),
    }
}

/// Binds any address, to speak plain HTTP there: behind a proxy on another machine that speaks TLS, or in a network in which nobody reads
/// along.
///
/// # Errors
/// [`Error::Address`].
pub async fn listen_plain(address: SocketAddr) -> Result<Listening> {
    Ok(Listening(Listener::bind(address).await?))
}

/// Binds any address, to speak HTTPS there with this certificate, after which its chain may follow, and its key: both files in PEM.
///
/// # Errors
/// [`Error::Tls`], and [`Error::Address`].
#[cfg(feature = "tls")]
pub async fn listen_tls(address: SocketAddr, certificate: &Path, key: &Path) -> Result<Listening> {
    let Listening(listener) = listen_plain(address).await?;
    Ok(Listening(listener.tls(certificate, key)?))
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
    let answering = Arc::clone(&handler);
    let answer = move |request, client| Arc::clone(&answering).answer(request, client);
    let served = sottovoce_net::serve(listening.0, limits.net, answer, &stop, None);
    let have_ended = tokio::select! {
        have_ended = served => have_ended,
        () = handler.watch.follow(&team) => return,
        () = upkeep(&team, limits.upkeep) => return,
    };
    if !have_ended {
        tracing::warn!("some requests did not end in time");
    }
}

/// Does what there is to do from time to time.
async fn upkeep(team: &Team, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let done = async {
            match team.takes_upkeep(every).await? {
                true => team.upkeep().await,
                false => Ok(UpkeepReport::default()),
            }
        };
        match done.await {
            Ok(report) => tracing::debug!(?report, "upkeep"),
            Err(error) => tracing::warn!(%error, "the upkeep failed, and is repeated later"),
        }
    }
}
