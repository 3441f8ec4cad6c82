//! One request, from its head to the head of its answer.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, HeaderName, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, Request, Response, StatusCode, request};
use hyper::body::Incoming;
use sottovoce::conversation::HostTurn;
use sottovoce::{Error, Scope};
use sottovoce_net::{Body, Client, Foreign, ReadError, closing, json, preflight, readable};
use tokio::sync::oneshot;

use crate::access::{Access, Refusal};
use crate::answer::{PassedAnswer, reason};
use crate::forward::{Failed, relay};
use crate::hub::Hub;
use crate::memory::{Asked, Prepared};
use crate::open_scope::OpenScope;
use crate::receipt::Receipt;
use crate::record::{Progress, Recorder};
use crate::reply::error;
use crate::request::{ChatRequest, Form, Unread};
use crate::route::{self, Endpoint, Route};

/// How many messages were recalled for the utterance, how many from before the session are in the request, the tokens
/// that this added, the time that it took, and where the account of it is.
const RECALLED: HeaderName = HeaderName::from_static("x-sottovoce-recalled");
const HISTORY: HeaderName = HeaderName::from_static("x-sottovoce-history");
const TOKENS: HeaderName = HeaderName::from_static("x-sottovoce-tokens");
const MICROS: HeaderName = HeaderName::from_static("x-sottovoce-micros");
const RECEIPT: HeaderName = HeaderName::from_static("x-sottovoce-receipt");
/// Whether words were recorded; why not, or why aside.
const RECORDED: HeaderName = HeaderName::from_static("x-sottovoce-recorded");

/// For so long, Home Assistant's form gets no answer while the model server is away. It calls every answer but a list an
/// unexpected error, and says after five seconds without one that it cannot connect.
const UNHEARD: Duration = Duration::from_secs(6);

const REMOTE: &str =
    "the model runs on other people's machines, and LanguageModel.AllowCloud is off";

/// What every request passes.
#[derive(Clone)]
pub(crate) struct Handler {
    pub(crate) hub: Arc<Hub>,
    pub(crate) access: Arc<Access>,
    pub(crate) listening: IpAddr,
}

/// A request that was let in.
struct Admitted {
    /// The path before the endpoint's, such as `/s/kitchen`.
    prefix: String,
    /// The endpoint's path.
    path: String,
    head: request::Parts,
}

impl Handler {
    /// Answers a request. The client is admitted once it has shown that it may ask.
    pub(crate) async fn answer(self, request: Request<Incoming>, client: Client) -> Response<Body> {
        let headers = request.headers();
        let is_openai = request.uri().path().contains("/v1/");
        if let Err(refusal) = self.access.check_names(headers, self.listening) {
            return *refused(is_openai, refusal);
        }
        let origin = headers.get(ORIGIN).cloned();
        let response = match preflight(request.method(), headers) {
            Some(told) => told,
            None => {
                let answered = self.respond(is_openai, request, &client).await;
                answered.unwrap_or_else(|refused| *refused)
            }
        };
        readable(response, origin)
    }

    async fn respond(
        &self,
        is_openai: bool,
        request: Request<Incoming>,
        client: &Client,
    ) -> Result<Response<Body>, Box<Response<Body>>> {
        let path = request.uri().path().to_owned();
        let refuse = |status, reason: &str| Box::new(error(is_openai, status, reason));
        let Route { scope, prefix, path } =
            route::split(&path).map_err(|error| refuse(StatusCode::NOT_FOUND, &reason(&error)))?;
        let endpoint = route::endpoint(request.method(), &path);
        let scope = match (self.access.scope(request.headers(), scope), &endpoint) {
            // A client asks for the models also when it speaks for nobody yet.
            (Err(Refusal::NoUser), Endpoint::PassThrough) => None,
            (scope, _) => Some(scope.map_err(|refusal| refused(is_openai, refusal))?),
        };
        if !client.admit() {
            return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, "too many clients are connected"));
        }
        match endpoint {
            Endpoint::Unknown => {
                let reason = "this path is not served; chat, generate, responses, models, show and \
                              embeddings are, below /s/NAME, /u/USER or nothing";
                return Err(refuse(StatusCode::NOT_FOUND, reason));
            }
            Endpoint::WrongMethod => {
                let reason = "this path is served with another method";
                return Err(refuse(StatusCode::METHOD_NOT_ALLOWED, reason));
            }
            _ => {}
        }
        let (head, body) = request.into_parts();
        if head.headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
            let reason = "the request's body must not be compressed";
            return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason));
        }
        let body = self.read(body, client, is_openai).await?;
        let admitted = Admitted { prefix, path, head };
        match (endpoint, scope) {
            (Endpoint::Converse(form), Some(scope)) => {
                self.converse(form, &scope, &admitted, body).await
            }
            (Endpoint::Named(unrecorded), _) => {
                self.pass(is_openai, &admitted, body, unrecorded).await
            }
            (Endpoint::Receipt(id), Some(scope)) => self.receipt(&scope, id).await,
            (_, scope) => {
                // Clients look for models long before the first words. The index may load meanwhile.
                if let Some(scope) = scope {
                    let hub = Arc::clone(&self.hub);
                    tokio::spawn(async move { drop(hub.open(&scope).await) });
                }
                let answered = self.forward(is_openai, &admitted, body, None).await;
                let is_away = |told: &Response<_>| told.status() == StatusCode::BAD_GATEWAY;
                // Home Assistant asks by Ollama's client for Python.
                let by = admitted.head.headers.get("user-agent").map(HeaderValue::as_bytes);
                if admitted.path == "/api/tags"
                    && by.is_some_and(|by| by.starts_with(b"ollama-python/"))
                    && answered.as_ref().is_err_and(is_away)
                {
                    tokio::time::sleep(UNHEARD).await;
                }
                answered
            }
        }
        .map_err(Box::new)
    }

    async fn read(
        &self,
        body: Incoming,
        client: &Client,
        is_openai: bool,
    ) -> Result<Bytes, Box<Response<Body>>> {
        let most = self.hub.config().serve.max_request_bytes;
        let mut body = client.read(body, most).await.map_err(|refused| {
            let reason: &str = match refused {
                ReadError::TooLong => {
                    &format!("a request may have at most {most} bytes (Serve.MaxRequestBytes)")
                }
                ReadError::Incomplete => "the request's body is incomplete",
                ReadError::TooSlow => "the request's body took too long",
                ReadError::Busy => "too many large requests are being answered; ask again later",
            };
            Box::new(closing(error(is_openai, refused.status(), reason)))
        })?;
        sottovoce_net::replace_lone_surrogates(&mut body);
        Ok(body.into())
    }

    async fn converse(
        &self,
        form: Form,
        scope: &Scope,
        admitted: &Admitted,
        body: Bytes,
    ) -> Result<Response<Body>, Response<Body>> {
        let is_openai = form.is_openai();
        let begun = Instant::now();
        let failed = |error: &Error| {
            self.hub.metrics().failed(error);
            self::failed(is_openai, error)
        };
        let request = match ChatRequest::read(form, &body) {
            Ok(request) => request,
            Err(Unread::Aside(reason)) => {
                return self.pass(is_openai, admitted, body, Some(reason)).await;
            }
            Err(Unread::Refused(reason)) => {
                return Err(error(is_openai, StatusCode::BAD_REQUEST, &reason));
            }
        };
        let client = self.access.key_name(&admitted.head.headers);
        let asked = Asked { request: &request, body: &body, client: &client };
        let prepared = self.prepare(scope, asked).await;
        let (scope, turn, prepared) = prepared.map_err(|error| failed(&error))?;
        self.check_model(is_openai, &request.model).await?;
        // While the model works, others have the memory.
        let aside = request.aside;
        drop((request, body));
        let settings = &self.hub.config().language_model;
        let recorder = Recorder {
            scope,
            session: prepared.session,
            utterance: prepared.utterance,
            answer: PassedAnswer::new(form, settings.max_answer_bytes),
            silence: Duration::from_secs(settings.timeout_seconds.max(1)),
            longest: Duration::from_secs(settings.max_answer_seconds),
            progress: Progress::begin(begun, turn, self.hub.metrics()),
        };
        let mut response = self.forward(is_openai, admitted, prepared.body, Some(recorder)).await?;
        account(response.headers_mut(), &prepared.receipt, &admitted.prefix, aside);
        Ok(response)
    }

    /// Forwards a request that is not recorded, for this reason if it has words.
    async fn pass(
        &self,
        is_openai: bool,
        admitted: &Admitted,
        body: Bytes,
        unrecorded: Option<&'static str>,
    ) -> Result<Response<Body>, Response<Body>> {
        let model = crate::request::model(&body);
        let model = model.map_err(|reason| error(is_openai, StatusCode::BAD_REQUEST, &reason))?;
        self.check_model(is_openai, &model).await?;
        let mut response = self.forward(is_openai, admitted, body, None).await?;
        if let Some(reason) = unrecorded {
            self.hub.note_unrecorded(reason);
            if let Ok(value) = HeaderValue::from_str(&format!("no; {reason}")) {
                response.headers_mut().insert(RECORDED, value);
            }
        }
        Ok(response)
    }

    /// Refuses a model on other people's machines, unless it may be asked.
    async fn check_model(&self, is_openai: bool, model: &str) -> Result<(), Response<Body>> {
        match self.hub.upstream.is_forbidden(model).await {
            Ok(false) => Ok(()),
            Ok(true) => Err(error(is_openai, StatusCode::FORBIDDEN, REMOTE)),
            Err(failure) => {
                self.hub.metrics().failed(&failure);
                Err(failed(is_openai, &failure))
            }
        }
    }

    /// Begins a turn, unless the request belongs to a thread, and prepares the request.
    async fn prepare(
        &self,
        scope: &Scope,
        asked: Asked<'_>,
    ) -> sottovoce::Result<(Arc<OpenScope>, Option<HostTurn>, Prepared)> {
        let scope = self.hub.open_to_talk(scope).await?;
        let is_thread = self.hub.config().serve.threads && asked.request.session.is_some();
        let turn = match is_thread {
            true => None,
            false => Some(scope.conversation.host_turn().await?),
        };
        let prepared = scope.prepare(&self.hub, asked).await?;
        self.hub.metrics().recalled(prepared.receipt.recalled.len());
        Ok((scope, turn, prepared))
    }

    /// Forwards a request, and waits for the head of the answer.
    async fn forward(
        &self,
        is_openai: bool,
        admitted: &Admitted,
        body: Bytes,
        recorder: Option<Recorder>,
    ) -> Result<Response<Body>, Response<Body>> {
        let (upstream, head) = (&self.hub.upstream, &admitted.head);
        let (method, query) = (head.method.clone(), head.uri.query());
        let request = upstream.request(method, &admitted.path, query, &head.headers, body);
        let answered = match request {
            Ok(request) => {
                let (sender, receiver) = oneshot::channel();
                let cut = self.hub.cut.clone();
                let checks = upstream.checks_answers(&admitted.path);
                let relayed = relay(upstream.client(), request, checks, recorder, sender, cut);
                self.hub.turns.spawn(relayed);
                receiver.await.unwrap_or(Err(Failed::Ended))
            }
            Err(failed) => Err(failed),
        };
        answered.map_err(|failed| match failed {
            Failed::Unreachable(why) => {
                let reason = format!(
                    "the model server cannot be reached: {why}; start it, or correct LanguageModel.BaseUrl"
                );
                tracing::warn!(error = %why, "the model server cannot be reached");
                error(is_openai, StatusCode::BAD_GATEWAY, &reason)
            }
            Failed::Remote => error(is_openai, StatusCode::FORBIDDEN, REMOTE),
            Failed::Interrupted(why) => {
                let reason = format!(
                    "interrupted: the model server closed the connection while it worked: {why}; ask again, and look into its log"
                );
                tracing::warn!(error = %why, "the model server closed the connection while it worked");
                error(is_openai, StatusCode::BAD_GATEWAY, &reason)
            }
            Failed::Ended => {
                error(is_openai, StatusCode::SERVICE_UNAVAILABLE, "this server is stopping")
            }
        })
    }

    async fn receipt(
        &self,
        scope: &Scope,
        id: Option<u64>,
    ) -> Result<Response<Body>, Response<Body>> {
        let failed = |error: &Error| self::failed(false, error);
        let scope = self.hub.open(scope).await.map_err(|error| failed(&error))?;
        let found = scope.receipts().find(id);
        let Some(receipt) = found else {
            let reason = "there was no request for this conversation since the server started, or too many came after it";
            return Err(error(false, StatusCode::NOT_FOUND, reason));
        };
        let receipt = receipt.with_words(&*scope.store).await.map_err(|error| failed(&error))?;
        Ok(json(StatusCode::OK, &receipt))
    }
}

/// Adds to an answer what memory did. No header holds words.
fn account(headers: &mut HeaderMap, receipt: &Receipt, prefix: &str, aside: Option<&str>) {
    let numbers = [
        (RECALLED, receipt.recalled.len().to_string()),
        (HISTORY, receipt.history.len().to_string()),
        (TOKENS, receipt.tokens.to_string()),
        (MICROS, receipt.micros.to_string()),
        (RECEIPT, format!("{prefix}/receipt/{}", receipt.id)),
        (RECORDED, aside.map_or("yes".to_owned(), |why| format!("aside; {why}"))),
    ];
    for (name, value) in numbers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
}

fn refused(is_openai: bool, refusal: Refusal) -> Box<Response<Body>> {
    let (status, reason) = match refusal {
        Refusal::NoKey => (StatusCode::UNAUTHORIZED, "a valid key is required"),
        Refusal::OtherScope => (StatusCode::FORBIDDEN, "the key does not open this conversation"),
        Refusal::NoUser => (
            StatusCode::FORBIDDEN,
            "the key speaks for many people, and the request names none of them: it needs one header \
             X-OpenWebUI-User-Id with a plain id, which Open WebUI sends with \
             ENABLE_FORWARD_USER_INFO_HEADERS",
        ),
        Refusal::Foreign(Foreign::Host) => (
            StatusCode::MISDIRECTED_REQUEST,
            "this name of the server is not allowed; add it with --allow-host or Serve.Hosts",
        ),
        Refusal::Foreign(Foreign::Origin) => (
            StatusCode::FORBIDDEN,
            "this page or program may not ask; add its Origin, such as https://chat.example or chrome-extension://*, \
             with --allow-host or Serve.Hosts",
        ),
    };
    let mut response = error(is_openai, status, reason);
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    Box::new(response)
}

/// Why a request was not forwarded. Nothing was asked of the model then.
fn failed(is_openai: bool, failure: &Error) -> Response<Body> {
    tracing::warn!(error = %failure, "a request was refused");
    let status = match failure {
        Error::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Error::Persona(_) => StatusCode::FORBIDDEN,
        Error::InvalidMessage { .. } | Error::InvalidScope { .. } => StatusCode::BAD_REQUEST,
        Error::Model { .. } => StatusCode::BAD_GATEWAY,
        Error::TurnInProgress => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    error(is_openai, status, &reason(failure))
}
