//! Accepts connections and serves them

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::server::connections::Connections;
use crate::server::handler::Handler;
use crate::server::socket::Socket;

/// The most bytes of a request's head, and of what is read ahead.
const LONGEST_HEAD: usize = 64 << 10;

/// The most headers of a request.
const HEADERS: usize = 64;

/// Accepts connections until `stop` is cancelled. Those that are open then are in what this returns.
pub(super) async fn accept(
    listener: TcpListener,
    handler: Arc<Handler>,
    stop: &CancellationToken,
) -> GracefulShutdown {
    let limits = *handler.rates.limits();
    let (graceful, connections) = (GracefulShutdown::new(), Connections::new(limits.connections));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return graceful,
        };
        let Ok((stream, peer)) = accepted else {
            // The connection broke at once, or the process has too many open files. Later connections may succeed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        drop(stream.set_nodelay(true));
        let connection = Arc::new(connections.enter());
        let closed = connection.closed();
        let handler = Arc::clone(&handler);
        let service = service_fn(move |request| {
            let (handler, connection) = (Arc::clone(&handler), Arc::clone(&connection));
            async move {
                let busy = connection.busy();
                busy.admit();
                let response = handler.answer(request, peer.ip()).await;
                // Busy until the client has the whole answer.
                Ok::<_, Infallible>(response.map(|body| busy.with(body)))
            }
        });
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .max_buf_size(LONGEST_HEAD)
            .max_headers(HEADERS)
            .serve_connection(TokioIo::new(Socket::new(stream, limits.unread)), service);
        let serving = graceful.watch(serving);
        tokio::spawn(async move {
            tokio::select! {
                // If the client broke off, there is no one to answer.
                _ = serving => {}
                () = closed.cancelled() => {}
            }
        });
    }
}
