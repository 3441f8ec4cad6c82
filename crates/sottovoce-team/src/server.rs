//! Requests to a team's server

use std::time::Duration;

use futures_util::StreamExt;
use reqwest::{Client, Method, Response, StatusCode, redirect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sottovoce::http::client_builder;
use sottovoce_remote::{Action, ErrorKind, RemoteError, part_of};
use sottovoce_sync::Failure;
use sottovoce_team_api::{Id, MAX_ARTIFACT, Problem, Secret};

use crate::error::{TeamError, TeamResult};
use crate::link::check_address;

/// How often a request is tried that may be repeated.
const ATTEMPTS: u32 = 5;

/// The longest first pause between two attempts. Each further one is at most three times as long.
const PAUSE: Duration = Duration::from_millis(200);

/// The longest pause that a server may ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);

/// How long an answer may take, beyond the time that a request asks the server to wait.
const TIME: Duration = Duration::from_secs(60);

/// The most bytes of an answer: a page of a thousand records of a mebibyte, of which a server sends 4 MiB unless one is longer.
const LONGEST: usize = 16 << 20;

/// The most characters of what a server says about an error.
const LONGEST_REASON: usize = 300;

/// A server, as one member or as nobody yet. `Debug` shows no token.
#[derive(Clone)]
pub(crate) struct Server {
    client: Client,
    address: String,
    token: Option<Secret>,
}

/// The body of a request.
enum Sent<'a> {
    Nothing,
    Json(&'a [u8]),
    Bytes(&'a [u8]),
}

impl Server {
    /// A server, which this client asks.
    pub(crate) fn new(client: Client, address: &str, token: Option<Secret>) -> TeamResult<Self> {
        check_address(address).map_err(|reason| TeamError::InvalidLink { reason })?;
        Ok(Self { client, address: address.to_owned(), token })
    }

    /// A client for all servers that are asked by HTTPS, or by plain HTTP. It keeps connections for the next request.
    pub(crate) fn client(is_encrypted: bool) -> TeamResult<Client> {
        // A redirection could lead to another server, and a proxy of the environment to anyone.
        let builder = client_builder(is_encrypted)?.no_proxy().redirect(redirect::Policy::none());
        let builder = builder.connect_timeout(Duration::from_secs(10));
        let client = builder.user_agent(concat!("sottovoce/", env!("CARGO_PKG_VERSION"))).build();
        client.map_err(|_| {
            let reason = "the HTTP client cannot be set up";
            RemoteError::new(ErrorKind::Other, Action::Open, "a team's server", reason).into()
        })
    }

    /// Reads something.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> TeamResult<T> {
        self.get_waiting(path, Duration::ZERO).await
    }

    /// Reads something for which the server waits.
    pub(crate) async fn get_waiting<T: DeserializeOwned>(
        &self,
        path: &str,
        wait: Duration,
    ) -> TeamResult<T> {
        let response = self.repeated(&Method::GET, path, &Sent::Nothing, TIME + wait).await?;
        self.json(path, response).await
    }

    /// Does something that may be done twice.
    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> TeamResult<T> {
        let body = self.body(path, body)?;
        let response = self.repeated(&method, path, &Sent::Json(&body), TIME).await?;
        self.json(path, response).await
    }

    /// Sends a request whose answer has no body.
    pub(crate) async fn change(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> TeamResult<()> {
        let body = self.body(path, body)?;
        self.repeated(&method, path, &Sent::Json(&body), TIME).await.map(drop)
    }

    pub(crate) async fn delete(&self, path: &str) -> TeamResult<()> {
        match self.repeated(&Method::DELETE, path, &Sent::Nothing, TIME).await {
            Err(error) if is_absent(&error) => Ok(()),
            done => done.map(drop),
        }
    }

    /// Makes something new. It is not repeated: the first attempt may have arrived.
    pub(crate) async fn create<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> TeamResult<T> {
        let body = self.body(path, body)?;
        let response = self.once(&Method::POST, path, &Sent::Json(&body), TIME).await;
        self.json(path, response.map_err(|failed| failed.error)?).await
    }

    pub(crate) async fn put_bytes(&self, path: &str, bytes: &[u8]) -> TeamResult<()> {
        self.repeated(&Method::PUT, path, &Sent::Bytes(bytes), TIME * 10).await.map(drop)
    }

    /// Reads bytes; `None` if there are none.
    pub(crate) async fn get_bytes(&self, path: &str) -> TeamResult<Option<Vec<u8>>> {
        match self.repeated(&Method::GET, path, &Sent::Nothing, TIME * 10).await {
            Ok(response) => self.bytes(path, response, MAX_ARTIFACT).await.map(Some),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn repeated(
        &self,
        method: &Method,
        path: &str,
        sent: &Sent<'_>,
        time: Duration,
    ) -> TeamResult<Response> {
        let mut longest = PAUSE;
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            let failed = match self.once(method, path, sent, time).await {
                Ok(response) => return Ok(response),
                Err(failed) => failed,
            };
            if left == 0 || !failed.error.is_transient() {
                return Err(failed.error);
            }
            let pause = failed.pause.unwrap_or_default().min(LONGEST_PAUSE);
            tokio::time::sleep(pause + part_of(longest)).await;
            longest *= 3;
        }
    }

    async fn once(
        &self,
        method: &Method,
        path: &str,
        sent: &Sent<'_>,
        time: Duration,
    ) -> Result<Response, Failed> {
        let url = format!("{}{path}", self.address);
        let mut request = self.client.request(method.clone(), url).timeout(time);
        if let Some(token) = &self.token {
            request = request.bearer_auth(&*token.reveal());
        }
        request = match sent {
            Sent::Nothing => request,
            Sent::Json(body) => {
                request.header("content-type", "application/json").body(body.to_vec())
            }
            Sent::Bytes(body) => request.body(body.to_vec()),
        };
        match request.send().await {
            Ok(response) if response.status().is_success() => Ok(response),
            Ok(response) => Err(self.refused(method, path, response).await),
            Err(error) => {
                let reason = match (error.is_timeout(), error.is_connect()) {
                    (true, _) => "no complete answer in time",
                    (_, true) => "no connection",
                    _ => "no answer",
                };
                let error = self.error(ErrorKind::Unreachable, method, path, reason);
                Err(Failed { error: error.into(), pause: None })
            }
        }
    }

    async fn refused(&self, method: &Method, path: &str, response: Response) -> Failed {
        let status = response.status();
        let pause = response.headers().get("retry-after").and_then(|text| text.to_str().ok());
        let pause = pause.and_then(|text| text.parse().ok()).map(Duration::from_secs);
        let problem = self.bytes(path, response, 1 << 16).await.ok();
        let problem = problem.and_then(|text| serde_json::from_slice::<Problem>(&text).ok());
        let reason = match problem {
            Some(problem) => reason(&problem.title),
            None => format!("status {}", status.as_u16()),
        };
        if status == StatusCode::UNAUTHORIZED && self.token.is_some() {
            let error = TeamError::NotAMember { address: self.address.clone() };
            return Failed { error, pause };
        }
        let kind = match status.as_u16() {
            401 | 403 => ErrorKind::Refused,
            404 => ErrorKind::NoContainer,
            413 => ErrorKind::TooLarge,
            408 | 429 | 500..=599 => ErrorKind::Unreachable,
            _ => ErrorKind::Other,
        };
        Failed { error: self.error(kind, method, path, reason).into(), pause }
    }

    async fn json<T: DeserializeOwned>(&self, path: &str, response: Response) -> TeamResult<T> {
        let text = self.bytes(path, response, LONGEST).await?;
        serde_json::from_slice(&text).map_err(|_| {
            let reason = "the answer is not that of a team's server";
            self.error(ErrorKind::Other, &Method::GET, path, reason).into()
        })
    }

    /// The bytes of an answer, which a hostile server could let go on for ever.
    async fn bytes(&self, path: &str, response: Response, most: usize) -> TeamResult<Vec<u8>> {
        let failed = |kind, reason| self.error(kind, &Method::GET, path, reason);
        let mut bytes = Vec::new();
        let mut pieces = response.bytes_stream();
        while let Some(piece) = pieces.next().await {
            let piece =
                piece.map_err(|_| failed(ErrorKind::Unreachable, "the answer broke off"))?;
            if bytes.len() + piece.len() > most {
                return Err(failed(ErrorKind::TooLarge, "the answer is too long").into());
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    fn body(&self, path: &str, body: &impl Serialize) -> TeamResult<Vec<u8>> {
        serde_json::to_vec(body).map_err(|_| {
            self.error(ErrorKind::Other, &Method::POST, path, "it cannot be written as JSON").into()
        })
    }

    fn error(
        &self,
        kind: ErrorKind,
        method: &Method,
        path: &str,
        reason: impl Into<String>,
    ) -> RemoteError {
        let action = match method.as_str() {
            "GET" => Action::Get,
            "DELETE" => Action::Delete,
            _ => Action::Put,
        };
        let path = path.split('?').next().unwrap_or_default();
        RemoteError::new(kind, action, format!("{}{path}", self.address), reason)
    }
}

struct Failed {
    error: TeamError,
    /// How long the server asks to wait.
    pause: Option<Duration>,
}

/// Whether what was asked for does not exist, or not for this member.
pub(crate) fn is_absent(error: &TeamError) -> bool {
    error.of_remote() == Some(ErrorKind::NoContainer)
}

/// Whether the server refused what this member may not do.
pub(crate) fn is_refused(error: &TeamError) -> bool {
    error.of_remote() == Some(ErrorKind::Refused)
}

/// What a server says, on one line and not too long.
fn reason(title: &str) -> String {
    title.chars().filter(|c| !c.is_control()).take(LONGEST_REASON).collect()
}

/// The path of an organisation.
pub(crate) fn team_path(team: Id) -> String {
    format!("/api/v1/orgs/{team}")
}

/// The path of the list of conversations.
pub(crate) fn list_path(team: Id) -> String {
    format!("{}/context/conversations", team_path(team))
}

/// The path of a conversation.
pub(crate) fn conversation_path(team: Id, conversation: Id) -> String {
    format!("{}/context/conversations/{conversation}", team_path(team))
}

sottovoce::debug_shows!(Server: address);
