//! Streamable HTTP, for clients that connect.
//!
//! Only loopback addresses are served without a token. The names in `Host` and `Origin` are looked at, so that no web page
//! gets at the server by having its own name lead to this machine.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use subtle::ConstantTimeEq;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tower_service::Service;
use zeroize::Zeroizing;

pub use super::TransportError;

/// The path that is served.
pub const PATH: &str = "/mcp";

/// The most bytes of a request.
const LONGEST_REQUEST: usize = 4 << 20;
/// How long a session may be silent before it is given up. Long, since it counts while an answer is being made too.
const SILENCE: Duration = Duration::from_secs(12 * 3600);
/// How long a client may take for the head of a request.
const SLOW: Duration = Duration::from_secs(10);
/// How long what is being answered may take when the server stops, and how long closing connections may.
const GRACE: Duration = Duration::from_secs(2);
const CLOSING: Duration = Duration::from_secs(5);
/// The most connections at once.
const MOST: usize = 256;

type Body = BoxBody<Bytes, Infallible>;

/// How clients may connect.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Admission {
    /// What each request must show as `Authorization: Bearer …`. Needed for addresses that other machines reach.
    pub token: Option<Token>,
    /// Names by which clients may call this machine, besides those of loopback.
    pub hosts: Vec<String>,
}

impl Admission {
    /// With a token, if there is one.
    pub fn new(token: Option<Zeroizing<String>>) -> Self {
        Self { token: token.map(|token| Token(Arc::new(token))), hosts: Vec::new() }
    }

    /// The same, where clients may call this machine by these names too.
    #[must_use]
    pub fn hosts(self, hosts: Vec<String>) -> Self {
        Self { hosts, ..self }
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(Token(token)) = &self.token else { return true };
        let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.split_once(' '));
        shown.is_some_and(|(scheme, shown)| {
            scheme.eq_ignore_ascii_case("bearer")
                && bool::from(shown.trim().as_bytes().ct_eq(token.as_bytes()))
        })
    }
}

/// What clients must show. `Debug` does not show it.
#[derive(Clone)]
pub struct Token(Arc<Zeroizing<String>>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(redacted)")
    }
}

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    admission: Admission,
}

impl Listening {
    /// Where it listens: with the port that the system chose, where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Listens at an address.
///
/// # Errors
/// [`TransportError::NoToken`] for an address beyond loopback without a token, and [`TransportError::Listen`].
pub async fn listen(
    address: SocketAddr,
    admission: Admission,
) -> Result<Listening, TransportError> {
    if !address.ip().is_loopback() && admission.token.is_none() {
        return Err(TransportError::NoToken { address });
    }
    let failed = |source| TransportError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok(Listening { listener, address, admission })
}

/// Serves until `stop` is cancelled; what is being answered then has two seconds, a model's answer one. `server` makes one
/// for each client, or each request of those that have no sessions.
pub async fn serve<S: ServerHandler>(
    listening: Listening,
    server: impl Fn() -> S + Send + Sync + 'static,
    stop: CancellationToken,
) {
    let Listening { listener, address, admission } = listening;
    let cut = CancellationToken::new();
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SILENCE);
    let config = config(address, &admission, cut.clone());
    let service = StreamableHttpService::new(move || Ok(server()), Arc::new(sessions), config);
    let (graceful, admission) = (GracefulShutdown::new(), Arc::new(admission));
    let places = Arc::new(tokio::sync::Semaphore::new(MOST));
    loop {
        let free = Arc::clone(&places);
        let next = async { (free.acquire_owned().await, listener.accept().await) };
        let (place, accepted) = tokio::select! {
            next = next => next,
            () = stop.cancelled() => break,
        };
        let Ok((socket, _)) = accepted else {
            // A connection that broke at once, or too many open files: others may come.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let connection = connection(socket, service.clone(), Arc::clone(&admission));
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            // Whoever breaks off has nothing to be told.
            drop(connection.await);
            drop(place);
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
        // Who knows by which name it is called; nobody gets past the token.
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

fn connection<S: ServerHandler>(
    socket: TcpStream,
    service: StreamableHttpService<S, LocalSessionManager>,
    admission: Arc<Admission>,
) -> Connection<
    impl hyper::service::HttpService<
        hyper::body::Incoming,
        ResBody = Body,
        Error = Infallible,
        Future: Send,
    >,
> {
    let answer = move |request: http::Request<hyper::body::Incoming>| {
        let (mut service, admission) = (service.clone(), Arc::clone(&admission));
        async move {
            if !admission.admits(request.headers()) {
                let mut refused = plain(StatusCode::UNAUTHORIZED, "a bearer token is needed\n");
                let scheme = HeaderValue::from_static("Bearer");
                refused.headers_mut().insert(WWW_AUTHENTICATE, scheme);
                return Ok(refused);
            }
            if request.uri().path() != PATH {
                return Ok(plain(StatusCode::NOT_FOUND, "the server is at /mcp\n"));
            }
            let ends_session = request.method() == Method::DELETE;
            let mut response = service.call(request).await?;
            if ends_session && response.status() == StatusCode::ACCEPTED {
                // It is over by now, and clients take this answer for a failure.
                response = plain(StatusCode::NO_CONTENT, "");
            }
            Ok(response)
        }
    };
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(SLOW)
        .serve_connection(TokioIo::new(socket), service_fn(answer))
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_token_is_let_in_and_no_debug_output_shows_it() {
        let admission = Admission::new(Some(Zeroizing::new("open sesame".to_owned())));
        let shown = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
            admission.admits(&headers)
        };
        assert!(shown("Bearer open sesame") && shown("bearer open sesame"));
        for wrong in
            ["Bearer open sesam", "Bearer open sesame2", "Basic open sesame", "open sesame", ""]
        {
            assert!(!shown(wrong), "{wrong}");
        }
        assert!(!admission.admits(&HeaderMap::new()));
        assert!(Admission::default().admits(&HeaderMap::new()));
        assert!(!format!("{admission:?}").contains("sesame"));
    }

    #[tokio::test]
    async fn an_address_that_others_reach_is_not_served_without_a_token() {
        let address = "0.0.0.0:0".parse().unwrap();
        let refused = listen(address, Admission::default()).await.unwrap_err();
        assert!(matches!(refused, TransportError::NoToken { .. }));
        let admission = Admission::new(Some(Zeroizing::new("open sesame".to_owned())));
        listen(address, admission).await.unwrap();
    }
}
