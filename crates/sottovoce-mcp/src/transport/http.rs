//! Streamable HTTP for clients that connect.
//!
//! Without a token the server listens on loopback addresses only. It checks the names in `Host` and `Origin`, so that
//! a web page cannot reach it through a domain name that resolves to this machine.

mod lenient;
mod sessions;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use sottovoce_net::{
    Body, Client, Foreign, Listener, Names, ReadError, closing, plain, preflight, readable,
    replace_lone_surrogates,
};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use sessions::Sessions;

pub use super::TransportError;
pub use sottovoce_net::Token;

/// The path of the endpoint.
pub const PATH: &str = "/mcp";

/// The most bytes of a request's body.
const LONGEST_REQUEST: usize = 4 << 20;

/// How clients may connect.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Admission {
    /// The token that each request must show as `Authorization: Bearer …`. Required for addresses that other machines
    /// can reach.
    pub token: Option<Token>,
    /// Host names that clients may use for this machine, besides those of loopback.
    pub hosts: Vec<String>,
}

impl Admission {
    /// Admission with this token, or without one.
    pub fn new(token: Option<Zeroizing<String>>) -> Self {
        Self { token: token.map(Token::new), hosts: Vec::new() }
    }

    /// Allows these host names too.
    #[must_use]
    pub fn hosts(self, hosts: Vec<String>) -> Self {
        Self { hosts, ..self }
    }
}

/// Limits of connections, sessions and times.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    /// Those of connections: 10 seconds for a head, 30 for a body, 2 to end. A client that asks much at once opens a connection for each
    /// request, so that as many of one address as of all may not have asked anything yet.
    pub net: sottovoce_net::Limits,
    /// The most sessions: 256. One more ends the session that has been idle longest.
    pub sessions: usize,
    /// How long a session may be idle, without a request in progress or an open stream: one hour.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let mut net = sottovoce_net::Limits::default();
        net.head = Duration::from_secs(10);
        net.body = Duration::from_secs(30);
        net.grace = Duration::from_secs(2);
        Self { net, sessions: 256, idle: Duration::from_secs(3600) }
    }
}

/// A server that is bound to its address but does not answer yet.
#[derive(Debug)]
pub struct Listening {
    listener: Listener,
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
        self.listener.address()
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
    if admission.token.as_ref().is_some_and(Token::is_blank) {
        return Err(TransportError::EmptyToken);
    }
    if !address.ip().is_loopback() && admission.token.is_none() {
        return Err(TransportError::NoToken { address });
    }
    let listener = Listener::bind(address).await?;
    Ok(Listening { listener, admission, limits: Limits::default() })
}

/// Serves until `stop` is cancelled. Requests in progress then have two seconds, a model's answer has one. `server`
/// creates one handler for each session, or for each request without a session.
pub async fn serve<S: ServerHandler>(
    listening: Listening,
    server: impl Fn() -> S + Send + Sync + 'static,
    stop: CancellationToken,
) {
    let Listening { listener, admission, limits } = listening;
    let cut = CancellationToken::new();
    let sessions = Arc::new(Sessions::new(limits));
    // Host and origin are checked before.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_json_response(true)
        .with_max_request_body_bytes(LONGEST_REQUEST)
        .with_cancellation_token(cut.clone());
    let listening = listener.address().ip();
    let mut names = Names::default();
    names.add(admission.hosts);
    let door = Arc::new(Door { token: admission.token, names, listening });
    let service = StreamableHttpService::new(move || Ok(server()), Arc::clone(&sessions), config);
    let answer = move |request: Request<Incoming>, client: Client| {
        let (mut service, door) = (service.clone(), Arc::clone(&door));
        async move {
            if let Some(foreign) = door.refusal(request.headers()) {
                return foreign;
            }
            let origin = request.headers().get(ORIGIN).cloned();
            if let Some(told) = preflight(request.method(), request.headers()) {
                return readable(told, origin);
            }
            let request = match door.pass(request, &client).await {
                Ok(request) => request,
                Err(refused) => return readable(refused, origin),
            };
            let ends_session = request.method() == Method::DELETE;
            let response = lenient::answer(&mut service, request).await;
            if ends_session && response.status() == StatusCode::ACCEPTED {
                // The session has ended, but some clients take this answer for a failure.
                return readable(plain(StatusCode::NO_CONTENT, ""), origin);
            }
            readable(client.hold(response.map(Body::new)).unwrap_or_else(refused), origin)
        }
    };
    tokio::select! {
        _ = sottovoce_net::serve(listener, limits.net, answer, &stop, Some(&cut)) => {}
        () = sessions.sweep() => {}
    }
    cut.cancel();
}

/// The checks that every request passes.
struct Door {
    token: Option<Token>,
    names: Names,
    listening: IpAddr,
}

impl Door {
    /// The answer to a request whose `Host` or `Origin` is not allowed.
    fn refusal(&self, headers: &HeaderMap) -> Option<Response<Body>> {
        let found = self.names.check(headers, self.listening, self.token.is_some());
        let text = match found {
            Ok(()) => return None,
            Err(Foreign::Host) => {
                "this name of the server is not allowed; add it with --allow-host\n"
            }
            Err(Foreign::Origin) => {
                "this page or program may not ask; add its Origin, such as https://chat.example, with --allow-host\n"
            }
        };
        Some(closing(plain(StatusCode::FORBIDDEN, text)))
    }

    /// Reads the whole request of a client that is admitted, or returns the refusal.
    async fn pass(
        &self,
        request: Request<Incoming>,
        client: &Client,
    ) -> Result<Request<Bytes>, Response<Body>> {
        let headers = request.headers();
        if self.token.as_ref().is_some_and(|token| !token.is_shown(headers)) {
            let mut refused = plain(StatusCode::UNAUTHORIZED, "a bearer token is required\n");
            refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return Err(closing(refused));
        }
        if !client.admit() {
            let text = "too many clients are connected\n";
            return Err(closing(plain(StatusCode::SERVICE_UNAVAILABLE, text)));
        }
        if request.uri().path().trim_end_matches('/') != PATH {
            return Err(plain(StatusCode::NOT_FOUND, "the endpoint is /mcp\n"));
        }
        let (head, body) = request.into_parts();
        let mut body = client.read(body, LONGEST_REQUEST).await.map_err(refused)?;
        replace_lone_surrogates(&mut body);
        Ok(Request::from_parts(head, body.into()))
    }
}

fn refused(why: ReadError) -> Response<Body> {
    let text = match why {
        ReadError::TooLong => "a request may have at most 4 MiB\n",
        ReadError::Incomplete => "the request's body is incomplete\n",
        ReadError::TooSlow => "the request's body took too long\n",
        ReadError::Busy => "too many large requests and answers are in memory; ask again\n",
    };
    closing(plain(why.status(), text))
}

#[cfg(test)]
mod tests {
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
