//! Serves the clients of a hub, with its background work. The futures are in boxes, so that this crate compiles what they do, and
//! not each program that serves.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::hub::Hub;
use crate::server::Server;
use crate::transport::{TransportError, http, stdio};

/// How long what a server leaves behind may take: partial answers, and the background work.
const PATIENCE: Duration = Duration::from_secs(5);

/// What serves until its end.
pub type Serving<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Serves clients that connect, as [`http::serve`] does.
pub fn serve_http(
    listening: http::Listening,
    hub: Arc<Hub>,
    stop: CancellationToken,
) -> Serving<()> {
    let server = Arc::clone(&hub);
    let served = http::serve(listening, move || Server::new(Arc::clone(&server)), stop.clone());
    Box::pin(with_upkeep(hub, stop, served))
}

/// Serves the client that started the process, as [`stdio::serve`] does.
pub fn serve_stdio(hub: Arc<Hub>, stop: CancellationToken) -> Serving<Result<(), TransportError>> {
    let served = stdio::serve(Server::new(Arc::clone(&hub)), stop.clone(), hub.stop());
    Box::pin(with_upkeep(hub, stop, served))
}

/// Runs a server with its background work, and stores what its end interrupts.
async fn with_upkeep<T>(
    hub: Arc<Hub>,
    stop: CancellationToken,
    served: impl Future<Output = T>,
) -> T {
    let upkeep = tokio::spawn(Arc::clone(&hub).keep_up());
    let ended = hub.stop();
    tokio::pin!(served);
    let outcome = tokio::select! {
        outcome = &mut served => outcome,
        () = stop.cancelled() => {
            ended.cancel();
            served.await
        }
    };
    ended.cancel();
    // Otherwise the partial answers of interrupted turns would be lost with the process.
    drop(tokio::time::timeout(PATIENCE, hub.close()).await);
    // Writes are atomic, so an abandoned one is harmless. Nobody should wait long.
    drop(tokio::time::timeout(PATIENCE, upkeep).await);
    outcome
}
