//! The HTTP client of all services: with time-outs, a limit on what is read, and redirects to the same server alone

use std::time::Duration;

use ::object_store::ClientOptions;
use ::object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::header::AUTHORIZATION;
use http::{HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use reqwest::Url;
use reqwest::redirect::{Attempt, Policy};
use sottovoce::http::client_builder;

use super::answer::{Answer, Late, TooLong, checked_code, code};
use crate::remote::MAX_OBJECT;
use crate::retry::SLOWEST;

/// The time for a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// The longest silence of a server, besides the time that the request takes at `SLOWEST`.
const SILENCE: Duration = Duration::from_secs(30);

/// The most bytes of an answer. Objects have a limit of their own; a WebDAV server lists a folder in one answer.
const LONGEST: usize = 2 * MAX_OBJECT;

/// The most bytes that are read of an answer that is not a success.
const LONGEST_REFUSAL: usize = 16 << 10;

/// The most redirects of one request.
const MOST_REDIRECTS: usize = 3;

#[derive(Clone, Default)]
pub(super) struct Connector {
    /// Whether the server is this machine.
    pub(super) is_local: bool,
    /// Whether it is asked by plain HTTP, which only this machine may be, so that nobody else sees what is sent.
    pub(super) is_plain: bool,
    /// Whether the server speaks WebDAV, where folders have to be created.
    pub(super) is_webdav: bool,
    pub(super) authorization: Option<HeaderValue>,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("is_plain", &self.is_plain).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Client {
    http: reqwest::Client,
    connector: Connector,
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> ::object_store::Result<HttpClient> {
        let builder = client_builder(!self.is_plain).map_err(|error| unusable(error.into()))?;
        // A proxy is another machine.
        let builder = if self.is_local { builder.no_proxy() } else { builder };
        let http = builder
            .https_only(!self.is_plain)
            .connect_timeout(CONNECT)
            .redirect(Policy::custom(redirect))
            .user_agent(concat!("sottovoce/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| unusable(error.into()))?;
        Ok(HttpClient::new(Client { http, connector: self.clone() }))
    }
}

fn unusable(source: Box<dyn std::error::Error + Send + Sync>) -> ::object_store::Error {
    ::object_store::Error::Generic { store: "HTTP", source }
}

/// Follows a redirect to the same address with a slash at its end, as WebDAV servers send it for a folder. Another server gets neither
/// requests nor credentials. Another page of this server, such as one to log in, is no object and stores none.
fn redirect(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let to = attempt.url();
    let is_same = |from: &Url| {
        from.origin() == to.origin()
            && from.query() == to.query()
            && from.path().trim_end_matches('/') == to.path().trim_end_matches('/')
    };
    if attempt.previous().last().is_some_and(is_same) && attempt.previous().len() <= MOST_REDIRECTS
    {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

impl Client {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let upload = Duration::from_secs((request.body().content_length() / SLOWEST) as u64);
        let answer = tokio::time::timeout(SILENCE + upload, self.exchange(request)).await;
        answer.map_err(|_| late("the server is silent"))?
    }

    // The object store's own way through this client brings HTTP/2, which no server needs.
    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let url = Url::parse(&head.uri.to_string())
            .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let mut request = reqwest::Request::new(head.method, url);
        *request.headers_mut() = head.headers;
        *request.body_mut() = Some(body.collect().await?.to_bytes().into());
        let response = self.http.execute(request).await.map_err(broken)?;
        let (head, body) = http::Response::<reqwest::Body>::from(response).into_parts();
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body.map_err(broken))))
    }
}

#[async_trait]
impl HttpService for Client {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if let Some(authorization) = &self.connector.authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        let method = request.method().clone();
        let is_mkcol = method.as_str() == "MKCOL";
        let again = is_mkcol.then(|| request.clone());
        let mut response = self.send(request).await?;
        // Apache also refuses a folder that another device creates at the same moment. Asked again, it says that it is there.
        if let Some(again) = again.filter(|_| response.status() == StatusCode::FORBIDDEN) {
            response = self.send(again).await?;
        }
        let (head, body) = response.into_parts();
        if head.status.is_success() {
            return Ok(HttpResponse::from_parts(head, limit(body, LONGEST)));
        }
        let status = head.status;
        if is_mkcol && status == StatusCode::METHOD_NOT_ALLOWED {
            // Another device has created this folder in the meantime.
            let mut response = HttpResponse::new(Bytes::new().into());
            *response.status_mut() = StatusCode::CREATED;
            return Ok(response);
        }
        // A WebDAV server that lacks a folder; it is created then.
        let lacks_folder = matches!(status, StatusCode::NOT_FOUND | StatusCode::CONFLICT);
        if lacks_folder && self.connector.is_webdav && (method == Method::PUT || is_mkcol) {
            return Ok(HttpResponse::from_parts(head, Bytes::new().into()));
        }
        // A refusal that cannot be read is still one.
        let body = limit(body, LONGEST_REFUSAL).bytes().await.unwrap_or_default();
        let header = head.headers.get("x-ms-error-code").and_then(|code| code.to_str().ok());
        let code = header.and_then(checked_code).or_else(|| code(&body));
        Err(HttpError::new(HttpErrorKind::Unknown, Answer { method, status, code }))
    }
}

fn broken(error: reqwest::Error) -> HttpError {
    let kind = match error {
        _ if error.is_timeout() => HttpErrorKind::Timeout,
        _ if error.is_connect() => HttpErrorKind::Connect,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error.without_url())
}

fn late(what: &'static str) -> HttpError {
    HttpError::new(HttpErrorKind::Timeout, Late(what))
}

/// A body that ends with an error once it is too long or pauses for too long.
fn limit(body: HttpResponseBody, longest: usize) -> HttpResponseBody {
    let frames = stream::unfold(Some((body, longest)), |state| async move {
        let (mut body, left) = state?;
        let frame = match tokio::time::timeout(SILENCE, body.frame()).await {
            Ok(frame) => frame?,
            Err(_) => return Some((Err(late("the server has stopped in the middle")), None)),
        };
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return Some((Err(error), None)),
        };
        let length = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(length) {
            Some(left) => Some((Ok(frame), Some((body, left)))),
            None => Some((Err(HttpError::new(HttpErrorKind::Decode, TooLong)), None)),
        }
    });
    HttpResponseBody::new(StreamBody::new(frames.fuse()))
}
