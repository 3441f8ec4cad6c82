//! Streamable HTTP for clients that connect.
//!
//! Without a token the server listens on loopback addresses only. It checks the names in `Host` and `Origin`, so that
//! a web page cannot reach it through a domain name that resolves to this machine.

mod admission;
mod sessions;
mod slots;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue, WWW_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use sessions::Sessions;
use slots::{ConnectionSlot, ConnectionSlots};

pub use super::TransportError;
pub use admission::{Admission, Token};

/// The path of the endpoint.
pub const PATH: &str = "/mcp";

/// The most bytes of a request's body, and of its head.
const LONGEST_REQUEST: usize = 4 << 20;
const LONGEST_HEAD: usize = 64 << 10;
/// How long requests in progress may take after the server was told to stop, and how long connections may take to
/// close.
const GRACE: Duration = Duration::from_secs(2);
const CLOSING: Duration = Duration::from_secs(5);

type Body = BoxBody<Bytes, Infallible>;

/// Limits of connections, sessions and times.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    /// The most connections of admitted clients: 256. A client is admitted by the token, or by a request if no token
    /// is needed.
    pub clients: usize,
    /// The most connections that are not admitted yet: 64. One more closes the oldest of them.
    pub strangers: usize,
    /// The most of these from one IPv4 address or one IPv6 network: 16.
    pub strangers_from_one_address: usize,
    /// How long the head of a request may take, and how long a connection may be silent between two requests: 10
    /// seconds.
    pub head: Duration,
    /// How long the body of a request may take: 30 seconds.
    pub body: Duration,
    /// The most sessions: 256. One more ends the session that has been idle longest.
    pub sessions: usize,
    /// How long a session may be idle, without a request in progress or an open stream: one hour.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 256,
            strangers: 64,
            strangers_from_one_address: 16,
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            sessions: 256,
            idle: Duration::from_secs(3600),
        }
    }
}

/// A server that is bound to its address but does not answer yet.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    admission: Admission,
    limits: Limits,
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
}

/// Binds an address.
///
/// # Errors
/// [`TransportError::NoToken`] for an address beyond loopback without a token, [`TransportError::EmptyToken`], and
/// [`TransportError::Listen`].
pub async fn listen(
    address: SocketAddr,
    admission: Admission,
) -> Result<Listening, TransportError> {
    if admission.has_empty_token() {
        return Err(TransportError::EmptyToken);
    }
    if !address.ip().is_loopback() && admission.token.is_none() {
        return Err(TransportError::NoToken { address });
    }
    let failed = |source| TransportError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Listening { listener, address, admission, limits: Limits::default() })
}

/// Serves until `stop` is cancelled. Requests in progress then have two seconds, a model's answer has one. `server`
/// creates one handler for each session, or for each request without a session.
pub async fn serve<S: ServerHandler>(
    listening: Listening,
    server: impl Fn() -> S + Send + Sync + 'static,
    stop: CancellationToken,
) {
    let Listening { listener, address, admission, limits } = listening;
    let cut = CancellationToken::new();
    let sessions = Arc::new(Sessions::new(limits));
    let config = config(address, &admission, cut.clone());
    let service = StreamableHttpService::new(move || Ok(server()), Arc::clone(&sessions), config);
    let (graceful, admission) = (GracefulShutdown::new(), Arc::new(admission));
    let places = ConnectionSlots::new(limits);
    let mut sweep = std::pin::pin!(sessions.sweep());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut sweep => break,
            () = stop.cancelled() => break,
        };
        let Ok((socket, peer)) = accepted else {
            // The connection broke at once, or the process has too many open files. Later connections may succeed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let place = places.enter(peer.ip());
        let closed = place.closed();
        let door = Door { admission: Arc::clone(&admission), limits, place: Arc::new(place) };
        let connection = graceful.watch(connection(socket, service.clone(), door));
        tokio::spawn(async move {
            tokio::select! {
                // The client broke off; there is no one to answer.
                _ = connection => {}
                () = closed.cancelled() => {}
            }
        });
    }
    drop(listener);
    let closed = graceful.shutdown();
    tokio::pin!(closed);
    if tokio::time::timeout(GRACE, &mut closed).await.is_err() {
        cut.cancel();
        drop(tokio::time::timeout(CLOSING, closed).await);
    }
    cut.cancel();
}

fn config(
    address: SocketAddr,
    admission: &Admission,
    cut: CancellationToken,
) -> StreamableHttpServerConfig {
    let mut hosts = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !address.ip().is_unspecified() {
        hosts.push(address.ip().to_string());
    }
    hosts.extend(admission.hosts.iter().cloned());
    let mut origins: Vec<String> =
        hosts.iter().map(|host| format!("http://{}:*", bracketed(host))).collect();
    origins.extend(hosts.iter().map(|host| format!("https://{}:*", bracketed(host))));
    if address.ip().is_unspecified() && admission.hosts.is_empty() {
        // The machine's other names are not known. The token protects the server.
        hosts.clear();
    }
    StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_json_response(true)
        .with_max_request_body_bytes(LONGEST_REQUEST)
        .with_cancellation_token(cut)
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

type Connection<F> = http1::Connection<TokioIo<TcpStream>, F>;

/// The checks that every request passes.
#[derive(Clone)]
struct Door {
    admission: Arc<Admission>,
    limits: Limits,
    place: Arc<ConnectionSlot>,
}

impl Door {
    /// Reads the whole request if the connection is admitted. Otherwise returns the refusal.
    async fn pass(
        &self,
        request: Request<Incoming>,
    ) -> Result<Request<Full<Bytes>>, Response<Body>> {
        if !self.admission.admits(request.headers()) {
            let mut refused = last(StatusCode::UNAUTHORIZED, "a bearer token is required\n");
            refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return Err(refused);
        }
        if !self.place.admit() {
            return Err(last(StatusCode::SERVICE_UNAVAILABLE, "too many clients are connected\n"));
        }
        if request.uri().path() != PATH {
            return Err(plain(StatusCode::NOT_FOUND, "the endpoint is /mcp\n"));
        }
        let (head, body) = request.into_parts();
        let too_long = || last(StatusCode::PAYLOAD_TOO_LARGE, "a request may have at most 4 MiB\n");
        if body.size_hint().lower() > LONGEST_REQUEST as u64 {
            return Err(too_long());
        }
        let body = Limited::new(body, LONGEST_REQUEST).collect();
        match tokio::time::timeout(self.limits.body, body).await {
            Ok(Ok(body)) => Ok(Request::from_parts(head, Full::new(body.to_bytes()))),
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_long()),
            Ok(Err(_)) => Err(last(StatusCode::BAD_REQUEST, "the request's body is incomplete\n")),
            Err(_) => Err(last(StatusCode::REQUEST_TIMEOUT, "the request's body took too long\n")),
        }
    }
}

fn connection<S: ServerHandler>(
    socket: TcpStream,
    service: StreamableHttpService<S, Sessions>,
    door: Door,
) -> Connection<
    impl hyper::service::HttpService<Incoming, ResBody = Body, Error = Infallible, Future: Send>,
> {
    let head = door.limits.head;
    let answer = move |request: Request<Incoming>| {
        let (mut service, door) = (service.clone(), door.clone());
        async move {
            let request = match door.pass(request).await {
                Ok(request) => request,
                Err(refused) => return Ok(refused),
            };
            let ends_session = request.method() == Method::DELETE;
            let mut response = service.call(request).await?;
            if ends_session && response.status() == StatusCode::ACCEPTED {
                // The session has ended, but some clients take this answer for a failure.
                response = plain(StatusCode::NO_CONTENT, "");
            }
            Ok(response)
        }
    };
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(socket), service_fn(answer))
}

/// A last answer before the connection is closed.
fn last(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = plain(status, text);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::*;

    #[tokio::test]
    async fn an_address_that_others_reach_is_not_served_without_a_token() {
        let address = "0.0.0.0:0".parse().unwrap();
        let refused = listen(address, Admission::default()).await.unwrap_err();
        assert!(matches!(refused, TransportError::NoToken { .. }));
        let admission = Admission::new(Some(Zeroizing::new("open sesame".to_owned())));
        listen(address, admission).await.unwrap();
    }

    #[tokio::test]
    async fn an_empty_token_is_an_error() {
        for empty in ["", " ", "\t\n"] {
            let admission = Admission::new(Some(Zeroizing::new(empty.to_owned())));
            for address in ["0.0.0.0:0", "127.0.0.1:0"] {
                let refused = listen(address.parse().unwrap(), admission.clone()).await;
                assert!(matches!(refused, Err(TransportError::EmptyToken)));
            }
        }
    }
}
