//! Listening and shutting down.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sottovoce::Scope;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::Access;
use crate::agent::Agent;
use crate::connection;
use crate::rooms::Rooms;

/// How many connections are served at once.
const CONNECTIONS: usize = 512;
/// How long connections may take to end when the server stops, and then what was spoken to be stored.
const LAST: Duration = Duration::from_secs(5);

/// Why an address cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
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
    listeners: Vec<(TcpListener, Option<Scope>)>,
    access: Access,
}

impl Listening {
    /// The addresses, in the order in which they were given. Port 0 has become a real one.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.listeners.iter().filter_map(|(listener, _)| listener.local_addr().ok())
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
        if !address.ip().is_loopback() && !access.has_others() {
            return Err(ListenError::NobodyAllowed { address });
        }
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| ListenError::Address { address, source })?;
        listeners.push((listener, scope));
    }
    Ok(Listening { listeners, access })
}

/// Answers transcripts until `stop` is cancelled; then waits for what was spoken to be stored.
pub async fn serve(listening: Listening, agent: Arc<Agent>, rooms: Rooms, stop: CancellationToken) {
    let tasks = TaskTracker::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    for (listener, scope) in listening.listeners {
        let rooms = match scope {
            Some(scope) => rooms.clone().otherwise(scope),
            None => rooms.clone(),
        };
        let accepting = Accepting {
            listener,
            access: listening.access.clone(),
            agent: Arc::clone(&agent),
            rooms: Arc::new(rooms),
            places: Arc::clone(&places),
            tasks: tasks.clone(),
            stop: stop.clone(),
        };
        tasks.spawn(accepting.run());
    }
    tokio::select! {
        () = stop.cancelled() => {}
        () = agent.conversations.clean_hourly() => {}
    }
    tasks.close();
    if tokio::time::timeout(LAST, tasks.wait()).await.is_err() {
        tracing::warn!("a connection did not end in time");
    }
    // Another server of the process may have a turn in progress that does not end.
    if tokio::time::timeout(LAST, agent.conversations.close()).await.is_err() {
        tracing::warn!("what was spoken could not be stored in time");
    }
}

/// One listener and what its connections need.
struct Accepting {
    listener: TcpListener,
    access: Access,
    agent: Arc<Agent>,
    rooms: Arc<Rooms>,
    places: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Accepting {
    async fn run(self) {
        loop {
            // Who comes when all places are taken waits in the system's queue.
            let Ok(place) = Arc::clone(&self.places).acquire_owned().await else { return };
            let accepted = tokio::select! {
                () = self.stop.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection was lost before it began");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            if !self.access.admits(peer) {
                tracing::warn!(%peer, "a machine that is not allowed tried to connect");
                continue;
            }
            let (agent, rooms) = (Arc::clone(&self.agent), Arc::clone(&self.rooms));
            let stop = self.stop.clone();
            self.tasks.spawn(async move {
                if let Err(error) = connection::run(stream, agent, rooms, stop).await {
                    tracing::debug!(%error, "a connection ended");
                }
                drop(place);
            });
        }
    }
}
