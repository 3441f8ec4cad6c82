//! Accepts connections and serves them

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio_util::sync::CancellationToken;

use crate::body::Body;
use crate::limits::Limits;
use crate::listener::{Listener, Stream};
use crate::places::{Client, Connection, Places};
use crate::socket::Socket;

/// The most bytes of a request's head, and of what is read ahead.
const LONGEST_HEAD: usize = 64 << 10;
/// How long connections may take to close after their answers were cut off.
const CLOSING: Duration = Duration::from_secs(5);

/// Answers requests until `stop` is cancelled. Answers in progress then have the grace period; after that, `cut` is cancelled so that they
/// end. Returns whether all of them ended.
pub async fn serve<A, F>(
    listener: Listener,
    limits: Limits,
    answer: A,
    stop: &CancellationToken,
    cut: Option<&CancellationToken>,
) -> bool
where
    A: Fn(Request<Incoming>, Client) -> F + Clone + Send + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let places = Places::new(limits);
    let stopping = stop.clone();
    let serve = move |stream, connection| {
        requests(stream, connection, answer.clone(), limits.head, stopping.clone())
    };
    accept(listener, &places, serve, stop).await;
    if places.wait(limits.grace).await {
        return true;
    }
    let Some(cut) = cut else { return false };
    cut.cancel();
    places.wait(CLOSING).await
}

/// Serves connections until `stop` is cancelled. [`Places::wait`] then waits for those that are open.
pub async fn accept<S, F>(
    listener: Listener,
    places: &Arc<Places>,
    serve: S,
    stop: &CancellationToken,
) where
    S: Fn(Stream, Connection) -> F + Clone + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let limits = *places.limits();
    loop {
        let accepted = tokio::select! {
            accepted = listener.socket.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let Ok((stream, peer)) = accepted else {
            // The connection broke at once, or the process has too many open files. Later connections may succeed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Small pieces of an answer are sent at once.
        drop(stream.set_nodelay(true));
        let handshake = listener.handshake(Socket::new(stream, limits.unread));
        let connection = places.enter(peer);
        let (serve, closed) = (serve.clone(), connection.closed());
        let serving = async move {
            if let Ok(Some(stream)) = tokio::time::timeout(limits.head, handshake).await {
                serve(stream, connection).await;
            }
        };
        places.spawn(async move {
            tokio::select! {
                () = serving => {}
                () = closed.cancelled() => {}
            }
        });
        // In a flood, who has sent a request already is admitted before the next one comes.
        tokio::task::yield_now().await;
    }
}

async fn requests<A, F>(
    stream: Stream,
    connection: Connection,
    answer: A,
    head: Duration,
    stop: CancellationToken,
) where
    A: Fn(Request<Incoming>, Client) -> F,
    F: Future<Output = Response<Body>>,
{
    let service = service_fn(move |request| {
        let client = connection.client();
        let answered = answer(request, client.clone());
        // Busy until the client has the whole answer.
        async move { Ok::<_, Infallible>(answered.await.map(|body| body.keeping(client))) }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    // If the client broke off, there is no one to answer.
    tokio::select! {
        _ = serving.as_mut() => {}
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            drop(serving.await);
        }
    }
}
