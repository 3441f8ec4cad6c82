//! Forwards requests to the model server, and passes its answers on as they come.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderName,
    HeaderValue, ORIGIN, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, REFERER, SET_COOKIE, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, Method, Response};
use http_body_util::Full;
use reqwest::{Body as Sent, Client, Request, Url, redirect, retry};
use sottovoce::config::ModelKind;
use sottovoce::conversation::ErrorKind;
use sottovoce::http::client_builder;
use sottovoce::model::{ModelFailure, ModelServer};
use sottovoce::{Config, Error, Result};
use sottovoce_net::{Body, Sender, lock, pieces};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use crate::record::{Broken, Recorder};
use crate::request::Object;

/// The longest time to establish a connection.
const CONNECTING: Duration = Duration::from_secs(5);
/// How often a silent connection is tested. A model may be silent for as long as it needs, but not a dead machine.
const ALIVE: Duration = Duration::from_secs(20);
/// How long a client may take nothing of an answer before it counts as gone.
const UNREAD: Duration = Duration::from_secs(120);
/// After this long, other turns of the conversation do not wait for such a client any more.
const STALLED: Duration = Duration::from_secs(5);
/// How many pieces of an answer wait for a client that reads slowly.
const WAITING: usize = 16;
/// How many bytes of an answer are read before its head goes on, if its first line tells where the model runs.
const FIRST: usize = 1 << 20;

/// Headers that belong to one connection, as do those that `Connection` names.
const OF_CONNECTION: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Headers of a request that are this server's own matter.
const NOT_FORWARDED: [HeaderName; 8] = [
    HOST,
    CONTENT_LENGTH,
    EXPECT,
    // Its key is for this server.
    AUTHORIZATION,
    COOKIE,
    // An answer must be readable on its way.
    ACCEPT_ENCODING,
    ORIGIN,
    REFERER,
];

/// How the headers begin in which Open WebUI says for whom it asks, with name and address.
const PERSONAL: &str = "x-openwebui-";

/// The headers of a message that go on.
fn end_to_end(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    let named = headers.get_all(CONNECTION).into_iter().filter_map(|names| names.to_str().ok());
    let named: Vec<&str> = named.flat_map(|names| names.split(',')).map(str::trim).collect();
    headers.iter().filter(move |(name, _)| {
        let is_named = named.iter().any(|named| name.as_str().eq_ignore_ascii_case(named));
        !is_named && !OF_CONNECTION.contains(name)
    })
}

/// Whether a header of an answer goes on. Cookies count for every port of a machine, so they would be those of other
/// servers, and this server's own headers are not for others to write.
fn is_passed_on(name: &HeaderName) -> bool {
    *name != SET_COOKIE && !name.as_str().starts_with("x-sottovoce-")
}

/// The model server.
pub(crate) struct Upstream {
    client: Client,
    base: Url,
    key: Option<Zeroizing<String>>,
    server: ModelServer,
    /// Whether models on other people's machines may be asked.
    allow_cloud: bool,
    /// Which models run on other people's machines, as far as it is known.
    remote: Mutex<HashMap<String, bool>>,
}

/// Why nothing came back.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The model server cannot be reached; with the operating system's reason.
    Unreachable(String),
    /// The answer says that it comes from other people's machines, and those may not be asked.
    Remote,
    /// The model server closed the connection before its answer began; with the operating system's reason.
    Interrupted(String),
    /// The client left, or this server stops.
    Ended,
}

impl Upstream {
    pub(crate) fn new(config: &Config) -> Result<Self> {
        // This checks the address and the key as for the library's own requests.
        let server = config.server()?;
        let settings = &config.language_model;
        let unusable = |error: &dyn std::fmt::Display| Error::Config {
            place: "LanguageModel.BaseUrl".to_owned(),
            reason: format!("cannot be used: {error}"),
        };
        let mut base = Url::parse(settings.base_url.trim()).map_err(|error| unusable(&error))?;
        let client = client_builder(base.scheme() == "https")?
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .no_proxy()
            .referer(false)
            .connect_timeout(CONNECTING)
            .tcp_keepalive(ALIVE)
            .build()
            .map_err(|error| unusable(&error.without_url()))?;
        let path = base.path().trim_end_matches('/');
        let path = match settings.kind {
            ModelKind::OpenAi => path.strip_suffix("/v1").unwrap_or(path),
            _ => path,
        };
        let path = path.to_owned();
        base.set_path(&path);
        let (key, allow_cloud) = (config.api_key()?, settings.allow_cloud);
        Ok(Self { client, base, key, server, allow_cloud, remote: Mutex::default() })
    }

    /// The request for the model server with the client's own headers.
    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
        query: Option<&str>,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Request, Failed> {
        let mut url = self.base.clone();
        let path = format!("{}{path}", self.base.path().trim_end_matches('/'));
        url.set_path(&path);
        if url.path() != path {
            return Err(Failed::Unreachable("the path is not what it seems".to_owned()));
        }
        url.set_query(query);
        // The builder moves user name and password from the address into a header.
        let request = self.client.request(method, url).build();
        let mut request = request.map_err(failed)?;
        let is_kept = |name: &HeaderName| {
            !NOT_FORWARDED.contains(name) && !name.as_str().starts_with(PERSONAL)
        };
        for (name, value) in end_to_end(headers).filter(|(name, _)| is_kept(name)) {
            request.headers_mut().append(name, value.clone());
        }
        if let Some(key) = &self.key {
            let bearer = Zeroizing::new(format!("Bearer {}", **key));
            if let Ok(mut bearer) = HeaderValue::from_str(&bearer) {
                bearer.set_sensitive(true);
                request.headers_mut().insert(AUTHORIZATION, bearer);
            }
        }
        if !body.is_empty() {
            // A whole body would be kept for another try, until the answer begins.
            *request.body_mut() = Some(Sent::wrap(Full::new(body)));
        }
        Ok(request)
    }

    /// Whether a model runs on other people's machines and may not be asked. A model that the server does not know is the
    /// server's to refuse.
    ///
    /// # Errors
    /// Fails if the server cannot tell.
    pub(crate) async fn is_forbidden(&self, model: &str) -> Result<bool> {
        let server = match &self.server {
            _ if self.allow_cloud => return Ok(false),
            ModelServer::OpenAi(server) => return Ok(!server.is_near()),
            // Ollama answers nothing without a model.
            _ if model.is_empty() => return Ok(false),
            server => server,
        };
        let known = lock(&self.remote).get(model).copied();
        if let Some(is_remote) = known {
            return Ok(is_remote);
        }
        let is_remote = match server.show(model).await {
            Err(Error::Model { failure: ModelFailure::NoSuchModel { .. }, .. }) => {
                return Ok(false);
            }
            shown => shown?.remote,
        };
        let mut remote = lock(&self.remote);
        if remote.len() >= 1024 {
            remote.clear();
        }
        remote.insert(model.to_owned(), is_remote);
        Ok(is_remote)
    }

    /// Whether answers at this path tell where the model runs, and that matters.
    pub(crate) fn checks_answers(&self, path: &str) -> bool {
        !self.allow_cloud && matches!(path, "/api/chat" | "/api/generate")
    }

    /// A client for a task of its own.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }
}

/// Sends a request and passes the answer on, until it ends, the client leaves or `cut` is cancelled. What was passed on
/// is recorded even if the client has gone. The head of the answer goes to `head`, its pieces after that. If `is_checked`,
/// an answer from other people's machines is refused.
pub(crate) async fn relay(
    client: Client,
    request: Request,
    is_checked: bool,
    mut recorder: Option<Recorder>,
    mut head: oneshot::Sender<Result<Response<Body>, Failed>>,
    cut: CancellationToken,
) {
    let silence = recorder.as_ref().map_or(UNREAD, |recorder| recorder.silence);
    let answered = async {
        let mut response = client.execute(request).await?;
        let is_read = is_checked && response.status().is_success();
        let first = if is_read { beginning(&mut response).await } else { VecDeque::new() };
        Ok::<_, reqwest::Error>((response, first))
    };
    let sent = tokio::select! {
        sent = giving_way(&mut recorder, silence, answered) => Some(sent),
        () = head.closed() => None,
        () = cut.cancelled() => None,
    };
    let Some(sent) = sent else {
        if let Some(recorder) = &mut recorder {
            recorder.finish(Some(Broken::Interrupted)).await;
        }
        return drop(head.send(Err(Failed::Ended)));
    };
    let (mut response, first) = match sent {
        Ok((response, first)) if !response.status().is_informational() && !is_remote(&first) => {
            (response, first)
        }
        sent => {
            if let Some(recorder) = &recorder {
                recorder.failed(ErrorKind::ModelUnreachable).await;
            }
            let reason = match sent {
                Ok((_, first)) if !first.is_empty() => Failed::Remote,
                Ok(_) => Failed::Unreachable("it wants to speak another protocol".to_owned()),
                Err(error) => failed(error),
            };
            return drop(head.send(Err(reason)));
        }
    };
    if !response.status().is_success()
        && let Some(recorder) = recorder.take()
    {
        recorder.failed(ErrorKind::Model).await;
    }
    let (pieces, body) = pieces(WAITING);
    let mut answer = Response::new(body);
    *answer.status_mut() = response.status();
    for (name, value) in end_to_end(response.headers()).filter(|(name, _)| is_passed_on(name)) {
        answer.headers_mut().append(name, value.clone());
    }
    let broken = match head.send(Ok(answer)) {
        Ok(()) => pass_on(&mut response, first, &mut recorder, pieces, &cut).await,
        Err(_) => Some(Broken::Interrupted),
    };
    // Closes the connection, which makes the model stop.
    drop(response);
    if let Some(recorder) = &mut recorder {
        recorder.finish(broken).await;
    }
}

/// Reads an answer to the end of its first line.
async fn beginning(response: &mut reqwest::Response) -> VecDeque<reqwest::Result<Bytes>> {
    let (mut pieces, mut length) = (VecDeque::new(), 0);
    while length < FIRST
        && let Some(piece) = response.chunk().await.transpose()
    {
        let is_last = piece.as_ref().map_or(true, |piece| piece.contains(&b'\n'));
        length += piece.as_ref().map_or(0, Bytes::len);
        pieces.push_back(piece);
        if is_last {
            break;
        }
    }
    pieces
}

/// Whether the first line of an answer says that it comes from other people's machines.
fn is_remote(first: &VecDeque<reqwest::Result<Bytes>>) -> bool {
    let pieces: Vec<&[u8]> = first.iter().flatten().map(|piece| &piece[..]).collect();
    let pieces = Zeroizing::new(pieces.concat());
    let line =
        pieces.split(|byte| *byte == b'\n').next().and_then(|line| str::from_utf8(line).ok());
    let Some(fields) = line.and_then(Object::parse) else { return false };
    let is_named = |name| fields.text(name).is_some_and(|name| !name.is_empty());
    is_named("remote_host") || is_named("remote_model")
}

async fn pass_on(
    response: &mut reqwest::Response,
    mut first: VecDeque<reqwest::Result<Bytes>>,
    recorder: &mut Option<Recorder>,
    pieces: Sender,
    cut: &CancellationToken,
) -> Option<Broken> {
    let silence = recorder.as_ref().map_or(UNREAD, |recorder| recorder.silence);
    loop {
        let next = async {
            match first.pop_front() {
                Some(piece) => piece.map(Some),
                None => response.chunk().await,
            }
        };
        let piece = tokio::select! {
            piece = giving_way(recorder, silence, next) => piece,
            () = pieces.closed() => return Some(Broken::Interrupted),
            () = cut.cancelled() => return Some(Broken::Interrupted),
        };
        let piece = match piece {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(_) => return Some(Broken::Failed),
        };
        if let Some(recorder) = recorder {
            // What a client has the end of is stored.
            if !recorder.push(&piece).await {
                return Some(Broken::Failed);
            }
        }
        if !giving_way(recorder, STALLED, pieces.send(piece, UNREAD)).await {
            return Some(Broken::Interrupted);
        }
    }
    if let Some(recorder) = recorder {
        recorder.finish(None).await;
    }
    pieces.complete();
    None
}

/// Waits for the model server or for the client. If that takes longer than `limit`, or the whole answer takes too long,
/// other turns of the conversation do not wait any more.
async fn giving_way<T>(
    recorder: &mut Option<Recorder>,
    limit: Duration,
    waited_for: impl Future<Output = T>,
) -> T {
    let Some(until) = recorder.as_ref().and_then(|recorder| recorder.holds_until(limit)) else {
        return waited_for.await;
    };
    tokio::pin!(waited_for);
    if let Ok(done) = tokio::time::timeout_at(until.into(), &mut waited_for).await {
        return done;
    }
    if let Some(recorder) = recorder {
        recorder.give_way();
    }
    waited_for.await
}

/// With the operating system's reason. The layers above it add nothing.
fn failed(error: reqwest::Error) -> Failed {
    let is_reached = error.is_request() && !error.is_connect();
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match is_reached {
        true => Failed::Interrupted(cause.to_string()),
        false => Failed::Unreachable(cause.to_string()),
    }
}

sottovoce::debug_shows!(Upstream);
