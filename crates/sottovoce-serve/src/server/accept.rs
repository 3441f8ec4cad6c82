//! Accepts connections and serves them.

use std::convert::Infallible;
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

use super::connections::{Connection, Connections};
use super::health::Health;
use super::listen::{Limits, Listening};
use crate::body::Body;
use crate::handler::Handler;

/// The most bytes of a request's head.
const LONGEST_HEAD: usize = 64 << 10;

/// What answers the requests at an address.
#[derive(Clone)]
pub(super) enum Responder {
    Clients(Handler),
    Health(Health),
}

impl Responder {
    async fn answer(
        self,
        request: Request<Incoming>,
        admit: impl FnOnce() -> bool,
    ) -> Result<Response<Body>, Infallible> {
        match self {
            Self::Clients(handler) => handler.answer(request, admit).await,
            Self::Health(health) => {
                admit();
                Ok(health.answer(request).await)
            }
        }
    }
}

/// Accepts connections until `stop` is cancelled. Those that are open then are in what this returns.
pub(super) async fn accept(
    listening: Listening,
    responder: Responder,
    stop: &CancellationToken,
) -> GracefulShutdown {
    let limits = listening.limits;
    let (graceful, connections) = (GracefulShutdown::new(), Connections::new(limits.connections));
    loop {
        let accepted = tokio::select! {
            accepted = listening.listener.accept() => accepted,
            () = stop.cancelled() => return graceful,
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
        let (responder, watcher) = (responder.clone(), graceful.watcher());
        #[cfg(feature = "tls")]
        let tls = listening.tls.clone();
        let serving = async move {
            #[cfg(feature = "tls")]
            if let Some(tls) = tls {
                let Ok(Ok(socket)) = tokio::time::timeout(limits.head, tls.accept(socket)).await
                else {
                    return;
                };
                return serve_one(socket, responder, connection, watcher, limits).await;
            }
            serve_one(socket, responder, connection, watcher, limits).await;
        };
        tokio::spawn(async move {
            tokio::select! {
                () = serving => {}
                () = closed.cancelled() => {}
            }
        });
    }
}

async fn serve_one(
    socket: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    responder: Responder,
    connection: Connection,
    watcher: Watcher,
    limits: Limits,
) {
    let connection = Arc::new(connection);
    let service = service_fn(move |request| {
        let (responder, connection) = (responder.clone(), Arc::clone(&connection));
        async move {
            // Busy until the head of the answer is there. The body below keeps it busy after that.
            let busy = connection.busy();
            let answered = responder.answer(request, || busy.admit()).await;
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
