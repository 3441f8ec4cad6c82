//! The HTTP server: its address, its connections and its end.

mod connections;
#[cfg(feature = "tls")]
mod tls;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::handler::Handler;
use crate::hub::Hub;
use connections::{Connection, Connections};

/// The most bytes of a request's head.
const LONGEST_HEAD: usize = 64 << 10;
/// How long partial answers may take to be stored.
const STORING: Duration = Duration::from_secs(10);

/// Limits of connections and times.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    /// The most connections. One more closes the one that has been idle longest.
    pub connections: usize,
    /// How long the head of a request may take, how long TLS may take, and how long a connection may be silent between
    /// two requests: 60 seconds.
    pub head: Duration,
    /// How long the body of a request may take: 60 seconds.
    pub body: Duration,
    /// How long answers in progress may go on after the server was told to stop: 5 seconds. What came of them by then is
    /// stored.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self { connections: 256, head: minute, body: minute, grace: Duration::from_secs(5) }
    }
}

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address is in use, or does not belong to this machine.
    #[error("cannot listen at {address}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// Other machines can reach the address, and clients need not show a key.
    #[error(
        "other machines can reach {address}, and neither a token nor a file of keys is configured"
    )]
    NoKey {
        /// The address.
        address: SocketAddr,
    },
    /// The certificate or its key cannot be used.
    #[error("{}: cannot be used for TLS: {reason}", path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// A server that is bound to its address but does not answer yet.
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    access: Access,
    limits: Limits,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsAcceptor>,
}

impl Listening {
    /// Replaces the limits.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The address it listens on, with the actual port if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Speaks TLS with this certificate and its key, both files in PEM.
    ///
    /// # Errors
    /// [`ListenError::Tls`].
    #[cfg(feature = "tls")]
    pub fn tls(
        self,
        certificate: &std::path::Path,
        key: &std::path::Path,
    ) -> Result<Self, ListenError> {
        Ok(Self { tls: Some(tls::acceptor(certificate, key)?), ..self })
    }
}

impl std::fmt::Debug for Listening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listening").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Binds an address.
///
/// # Errors
/// [`ListenError::NoKey`] for an address beyond loopback if clients need no key, and [`ListenError::Address`].
pub async fn listen(address: SocketAddr, access: Access) -> Result<Listening, ListenError> {
    if !address.ip().is_loopback() && !access.is_closed() {
        return Err(ListenError::NoKey { address });
    }
    let failed = |source| ListenError::Address { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Listening {
        listener,
        address,
        access,
        limits: Limits::default(),
        #[cfg(feature = "tls")]
        tls: None,
    })
}

/// Serves until `stop` is cancelled. Answers in progress then have the grace period; what came of them by then is stored
/// before this returns.
pub async fn serve(listening: Listening, hub: Arc<Hub>, stop: CancellationToken) {
    let Listening { listener, address, access, limits, .. } = listening;
    let handler = Handler {
        hub: Arc::clone(&hub),
        access: Arc::new(access),
        listening: address.ip(),
        body_time: limits.body,
    };
    let (graceful, connections) = (GracefulShutdown::new(), Connections::new(limits.connections));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let Ok((socket, _)) = accepted else {
            // The connection broke at once, or the process has too many open files. Later connections may succeed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Small pieces of an answer are sent at once.
        drop(socket.set_nodelay(true));
        let connection = connections.enter();
        let closed = connection.closed();
        let (handler, watcher) = (handler.clone(), graceful.watcher());
        #[cfg(feature = "tls")]
        let tls = listening.tls.clone();
        let serving = async move {
            #[cfg(feature = "tls")]
            if let Some(tls) = tls {
                let Ok(Ok(socket)) = tokio::time::timeout(limits.head, tls.accept(socket)).await
                else {
                    return;
                };
                return serve_one(socket, handler, connection, watcher, limits).await;
            }
            serve_one(socket, handler, connection, watcher, limits).await;
        };
        tokio::spawn(async move {
            tokio::select! {
                () = serving => {}
                () = closed.cancelled() => {}
            }
        });
    }
    drop(listener);
    let closed = graceful.shutdown();
    tokio::pin!(closed);
    if tokio::time::timeout(limits.grace, &mut closed).await.is_err() {
        hub.cut.cancel();
    }
    hub.turns.close();
    if tokio::time::timeout(STORING, hub.turns.wait()).await.is_err() {
        tracing::warn!("some partial answers could not be stored in time");
    }
}

async fn serve_one(
    socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    handler: Handler,
    connection: Connection,
    watcher: Watcher,
    limits: Limits,
) {
    let connection = Arc::new(connection);
    let service = service_fn(move |request| {
        let (handler, connection) = (handler.clone(), Arc::clone(&connection));
        async move {
            // Busy until the head of the answer is there. The body below keeps it busy after that.
            let busy = connection.busy();
            let answered = handler.answer(request, || busy.admit()).await;
            answered.map(|response| response.map(|body| busy.with(body)))
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(socket), service);
    // If the client broke off, there is no one to answer.
    drop(watcher.watch(serving).await);
}
