//! Listening and shutting down.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sottovoce::Scope;
use sottovoce_net::{Limits, Listener, Places, accept};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::Access;
use crate::agent::Agent;
use crate::connection;
use crate::rooms::Rooms;

/// The most connections of clients. One more closes the one that has been silent longest.
const CONNECTIONS: usize = 512;
/// How long a client may take to accept what is said to it.
const UNREAD: Duration = Duration::from_secs(30);
/// How long connections may take to end when the server stops, and then what was spoken to be stored.
const LAST: Duration = Duration::from_secs(5);

/// Why an address cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address cannot be listened on.
    #[error(transparent)]
    Address(#[from] sottovoce_net::ListenError),
    /// Other machines could reach the address, and none is allowed.
    #[error("{address} can be reached by other machines, and the protocol knows no passwords")]
    NobodyAllowed {
        /// The address.
        address: SocketAddr,
    },
}

/// Addresses that are listened on.
#[derive(Debug)]
pub struct Listening {
    listeners: Vec<(Listener, Option<Scope>)>,
    access: Access,
}

impl Listening {
    /// The addresses, in the order in which they were given. Port 0 has become a real one.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.listeners.iter().map(|(listener, _)| listener.address())
    }
}

/// Listens on addresses, each with a conversation of its own if it has one. Older programs than Home Assistant 2026.4 name
/// no satellite, and need an address for each room.
///
/// # Errors
/// Those of listening, and an address that other machines can reach when none is allowed.
pub async fn listen(
    addresses: impl IntoIterator<Item = (SocketAddr, Option<Scope>)>,
    access: Access,
) -> Result<Listening, ListenError> {
    let mut listeners = Vec::new();
    for (address, scope) in addresses {
        if !address.ip().is_loopback() && access.allowed.is_empty() {
            return Err(ListenError::NobodyAllowed { address });
        }
        listeners.push((Listener::bind(address).await?, scope));
    }
    Ok(Listening { listeners, access })
}

/// Answers transcripts until `stop` is cancelled; then waits for what was spoken to be stored.
pub async fn serve(listening: Listening, agent: Arc<Agent>, rooms: Rooms, stop: CancellationToken) {
    let mut limits = Limits::of(CONNECTIONS);
    // Satellites connect long before somebody speaks.
    (limits.strangers, limits.strangers_from_one_address) = (CONNECTIONS, CONNECTIONS);
    limits.unread = UNREAD;
    let (places, accepting) = (Places::new(limits), TaskTracker::new());
    for (listener, scope) in listening.listeners {
        let rooms = Arc::new(match scope {
            Some(scope) => rooms.clone().otherwise(scope),
            None => rooms.clone(),
        });
        let (access, agent, places) =
            (listening.access.clone(), Arc::clone(&agent), Arc::clone(&places));
        let stop = stop.clone();
        accepting.spawn(async move {
            let stopping = stop.clone();
            let serve = move |stream, connection: sottovoce_net::Connection| {
                let (access, agent) = (access.clone(), Arc::clone(&agent));
                let (rooms, stop) = (Arc::clone(&rooms), stopping.clone());
                async move {
                    let peer = connection.peer();
                    if !access.admits(peer) {
                        tracing::warn!(%peer, "a machine that is not allowed tried to connect");
                        return;
                    }
                    let served = connection::run(stream, &connection, agent, rooms, stop).await;
                    if let Err(error) = served {
                        tracing::debug!(%error, "a connection ended");
                    }
                }
            };
            accept(listener, &places, serve, &stop).await;
        });
    }
    accepting.close();
    tokio::select! {
        () = stop.cancelled() => accepting.wait().await,
        () = agent.conversations.clean_hourly() => {}
    }
    if !places.wait(LAST).await {
        tracing::warn!("a connection did not end in time");
    }
    // Another server of the process may have a turn in progress that does not end.
    if tokio::time::timeout(LAST, agent.conversations.close()).await.is_err() {
        tracing::warn!("what was spoken could not be stored in time");
    }
}
