//! The HTTP client of one server address.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Body, Client, Method, Request, StatusCode, Url, redirect, retry};
use tokio::time::{sleep, timeout};
use zeroize::Zeroizing;

use super::answer::Answer;
use super::near::is_near;
use crate::error::{Error, ModelFailure, Result};
use crate::model::AnswerLimits;
use crate::model::http_client::client_builder;

/// The longest time to establish a connection.
const CONNECTING: Duration = Duration::from_secs(5);
/// The pauses before asking a busy server again.
const BUSY: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1)];

/// A client of one server.
#[derive(Clone)]
pub(crate) struct HttpClient {
    client: Client,
    base: Url,
    shown: String,
    pub(super) silence: Duration,
    pub(super) limits: AnswerLimits,
    /// The bearer token of each request.
    key: Option<Zeroizing<String>>,
}

impl HttpClient {
    pub(crate) fn new(base_url: &str, silence: Duration) -> Result<Self> {
        let base = address(base_url)?;
        let client = client_builder(base.scheme() == "https")?
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .no_proxy()
            .referer(false)
            .connect_timeout(silence.min(CONNECTING))
            .build()
            .map_err(|error| unusable(format!("cannot be used: {}", error.without_url())))?;
        let shown = without_login(&base);
        Ok(Self { client, base, shown, silence, limits: AnswerLimits::default(), key: None })
    }

    /// The address without user name and password.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    pub(crate) fn with_limits(&self, limits: AnswerLimits) -> Self {
        Self { limits, ..self.clone() }
    }

    /// Sets the bearer token.
    ///
    /// # Errors
    /// [`Error::Config`] for a key that cannot be a header value, or that would cross a public network unencrypted.
    pub(crate) fn with_key(mut self, key: Zeroizing<String>) -> Result<Self> {
        let place = || "LanguageModel.ApiKey".to_owned();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            let reason = "the key must be one word of printable ASCII".to_owned();
            return Err(Error::Config { place: place(), reason });
        }
        if self.base.scheme() != "https" && !self.is_near() {
            let reason =
                format!("the key is not sent to {} without encryption; use https", self.shown);
            return Err(Error::Config { place: place(), reason });
        }
        self.key = Some(key);
        Ok(self)
    }

    /// Whether the server is on this machine or the local network, by its address.
    pub(crate) fn is_near(&self) -> bool {
        is_near(&self.base)
    }

    pub(crate) fn fail(&self, failure: ModelFailure) -> Error {
        Error::Model { server: self.shown.clone(), failure }
    }

    pub(super) fn timed_out(&self) -> Error {
        let seconds = self.silence.as_millis().div_ceil(1000);
        self.fail(ModelFailure::TimedOut { seconds: u64::try_from(seconds).unwrap_or(u64::MAX) })
    }

    pub(crate) async fn get(self: &Arc<Self>, path: &'static str) -> Result<Answer> {
        self.ask(Method::GET, path, None).await
    }

    pub(crate) async fn post(self: &Arc<Self>, path: &'static str, body: String) -> Result<Answer> {
        self.ask(Method::POST, path, Some(body)).await
    }

    async fn ask(
        self: &Arc<Self>,
        method: Method,
        path: &'static str,
        body: Option<String>,
    ) -> Result<Answer> {
        let mut waits = BUSY.into_iter();
        // A model that is asked twice computes, and costs, twice. What only reads may be asked again.
        let mut may_repeat = method == Method::GET;
        let request = self.request(method, path, body)?;
        loop {
            let sent = timeout(self.silence, self.client.execute(again(&request)));
            let response = match sent.await {
                Err(_) => return Err(self.timed_out()),
                Ok(Err(error)) if may_repeat && !error.is_connect() => {
                    tracing::debug!(path, "the connection broke; trying another");
                    may_repeat = false;
                    continue;
                }
                Ok(Err(error)) => {
                    let is_connect = error.is_connect();
                    let cause = innermost(&error.without_url());
                    return Err(self.fail(match is_connect {
                        true => ModelFailure::Unreachable(cause.into()),
                        false => ModelFailure::Interrupted { reason: cause },
                    }));
                }
                Ok(Ok(response)) => response,
            };
            let status = response.status();
            tracing::debug!(path, status = status.as_u16(), "the server answers");
            if status == StatusCode::SERVICE_UNAVAILABLE {
                drop(response);
                let Some(wait) = waits.next() else {
                    return Err(self.fail(ModelFailure::Busy));
                };
                sleep(wait).await;
                continue;
            }
            let answer = Answer::new(Arc::clone(self), request, response);
            return if status.is_success() { Ok(answer) } else { Err(answer.refusal().await) };
        }
    }

    fn request(&self, method: Method, path: &str, body: Option<String>) -> Result<Request> {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        // The builder moves user name and password from the address into a header that `Debug` hides.
        let mut request = self
            .client
            .request(method, url)
            .build()
            .map_err(|error| unusable(format!("cannot be asked: {}", error.without_url())))?;
        if let Some(key) = &self.key {
            let bearer = Zeroizing::new(format!("Bearer {}", **key));
            let mut bearer = HeaderValue::from_str(&bearer)
                .map_err(|_| unusable("cannot be used with this key".to_owned()))?;
            bearer.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, bearer);
        }
        if let Some(body) = body {
            request
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            *request.body_mut() = Some(Body::from(body));
        }
        Ok(request)
    }
}

/// A copy of the request that shares its bytes.
fn again(request: &Request) -> Request {
    // Only streamed bodies cannot be cloned.
    request
        .try_clone()
        .unwrap_or_else(|| Request::new(request.method().clone(), request.url().clone()))
}

/// The operating system's error. The layers above it add no information.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn unusable(reason: String) -> Error {
    Error::Config { place: "LanguageModel.BaseUrl".into(), reason }
}

fn address(text: &str) -> Result<Url> {
    // The parser's own errors do not quote the text, which may hold a password.
    let url = Url::parse(text.trim()).map_err(|error| {
        unusable(format!("not an address such as http://127.0.0.1:11434: {error}"))
    })?;
    match url.scheme() {
        "http" => {}
        "https" if cfg!(feature = "tls") => {}
        "https" => {
            let reason = "https is not built in; build with the feature `tls` (`https-client` of the command line), or use http";
            return Err(unusable(reason.into()));
        }
        _ => return Err(unusable("must begin with http:// or https://".into())),
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(unusable("must not contain `?` or `#`".into()));
    }
    Ok(url)
}

fn without_login(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let path = url.path().trim_end_matches('/');
    format!("{}://{}{port}{path}", url.scheme(), url.host_str().unwrap_or_default())
}
