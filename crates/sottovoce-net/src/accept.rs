//! Accepts connections and serves them

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::body::Body;
use crate::connections::{Busy, Connection, ConnectionLimits, Connections};
use crate::listener::Listener;
use crate::socket::Socket;

/// The most bytes of a request's head, and of what is read ahead.
const LONGEST_HEAD: usize = 64 << 10;

/// Who sends a request, on a connection that has a place.
#[derive(Debug, Clone)]
pub struct Client {
    address: IpAddr,
    busy: Arc<Busy>,
}

impl Client {
    /// Its address, or that of a proxy.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Lets the request in: until its answer has ended, no other connection takes the place of this one. Returns false if there are too
    /// many clients, and the connection is being closed.
    pub fn admit(&self) -> bool {
        self.busy.admit()
    }
}

/// Accepts connections until `stop` is cancelled, and has `answer` answer their requests. Those that are open then are in what this
/// returns: its `shutdown` waits for the answers in progress.
pub async fn accept<A, F>(
    listener: Listener,
    limits: ConnectionLimits,
    answer: A,
    stop: &CancellationToken,
) -> GracefulShutdown
where
    A: Fn(Request<Incoming>, Client) -> F + Clone + Send + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let (graceful, connections) = (GracefulShutdown::new(), Connections::new(limits.connections));
    loop {
        let accepted = tokio::select! {
            accepted = listener.socket.accept() => accepted,
            () = stop.cancelled() => return graceful,
        };
        let Ok((stream, peer)) = accepted else {
            // The connection broke at once, or the process has too many open files. Later connections may succeed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Small pieces of an answer are sent at once.
        drop(stream.set_nodelay(true));
        let socket = Socket::new(stream, limits.unread);
        let connection = connections.enter();
        let closed = connection.closed();
        let (answer, address, watcher) = (answer.clone(), peer.ip(), graceful.watcher());
        #[cfg(feature = "tls")]
        let tls = listener.tls.clone();
        let serving = async move {
            #[cfg(feature = "tls")]
            if let Some(tls) = tls {
                if let Ok(Ok(socket)) = tokio::time::timeout(limits.head, tls.accept(socket)).await
                {
                    serve(socket, address, answer, connection, watcher, limits.head).await;
                }
                return;
            }
            serve(socket, address, answer, connection, watcher, limits.head).await;
        };
        tokio::spawn(async move {
            tokio::select! {
                () = serving => {}
                () = closed.cancelled() => {}
            }
        });
    }
}

async fn serve<A, F>(
    socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    address: IpAddr,
    answer: A,
    connection: Connection,
    watcher: Watcher,
    head: Duration,
) where
    A: Fn(Request<Incoming>, Client) -> F,
    F: Future<Output = Response<Body>>,
{
    let connection = Arc::new(connection);
    let service = service_fn(move |request| {
        let busy = Arc::new(connection.busy());
        let answered = answer(request, Client { address, busy: Arc::clone(&busy) });
        // Busy until the client has the whole answer.
        async move { Ok::<_, Infallible>(answered.await.map(|body| busy.with(body))) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(socket), service);
    // If the client broke off, there is no one to answer.
    drop(watcher.watch(serving).await);
}
