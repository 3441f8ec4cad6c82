//! What every request passes: the names of this server, the size and time of bodies, getting in, and the headers of answers.

mod reply;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Redirect, Response};
use bytes::Bytes;
use http::header::{ALLOW, CONNECTION, HeaderValue, REFRESH, SET_COOKIE};
use http::{HeaderMap, Method, Request, StatusCode};
use hyper::body::Incoming;
use sottovoce_net::{Client, Limits, Listener, same};
use tokio_util::sync::CancellationToken;
use tower_service::Service;
use zeroize::Zeroizing;

use crate::app::App;
use crate::english as en;
use crate::enter::{Entry, Gate, Names, NotOurs, TooManyGuesses, cookie};
use crate::failure::Failure;
use crate::html::{Visit, assets};
use crate::routes::{routes, stays_readable};
use crate::view::enter::{closed, entered, locked};

/// The most bytes of a form: a message of a megabyte whose every byte is encoded in three.
const LONGEST_BODY: usize = 4 << 20;
/// The most bytes of a form of somebody who is not let in: a passphrase or a token.
const LONGEST_OF_STRANGERS: usize = 4 << 10;
/// The most connections that have no cookie.
const STRANGERS: usize = 256;
/// How long a request's head, and its body, may take.
const ASKING: Duration = Duration::from_secs(15);
/// How long a browser may leave an answer unread.
const UNREAD: Duration = Duration::from_secs(30);
/// How often sessions that are idle too long are looked for.
const SWEEP: Duration = Duration::from_secs(1);

/// What stands between the network and the views.
pub(crate) struct Door {
    app: Arc<App>,
    gate: Gate,
    names: Names,
    announce: Arc<dyn Fn(String) + Send + Sync>,
    views: Router,
}

impl Door {
    pub(crate) fn new(
        app: Arc<App>,
        gate: Gate,
        names: Names,
        announce: Arc<dyn Fn(String) + Send + Sync>,
    ) -> Self {
        let views = routes(Arc::clone(&app));
        Self { app, gate, names, announce, views }
    }

    /// A new link that lets one browser in.
    pub(crate) fn link(&self) -> Result<String, getrandom::Error> {
        Ok(self.address_of(&self.gate.new_link()?))
    }

    fn address_of(&self, key: &str) -> String {
        format!("{}/enter?key={key}", self.names.url())
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        client: &Client,
    ) -> Result<Response, Failure> {
        let (head, body) = request.into_parts();
        let (path, is_post) = (head.uri.path().to_owned(), head.method == Method::POST);
        let is_link = path == "/enter" && head.method == Method::GET;
        self.names.check(&head.headers, is_post, is_link).map_err(|refused| match refused {
            NotOurs::Host => Failure::Plain(StatusCode::MISDIRECTED_REQUEST, en::OTHER_HOST),
            NotOurs::Origin => Failure::Plain(StatusCode::FORBIDDEN, en::OTHER_ORIGIN),
        })?;
        if !matches!(head.method, Method::GET | Method::HEAD | Method::POST) {
            return Err(Failure::Plain(StatusCode::METHOD_NOT_ALLOWED, en::ONLY_GET_AND_POST));
        }
        if !is_post && let Some(asset) = assets::find(&path) {
            return Ok(asset);
        }
        if is_link {
            return self.enter(&head);
        }
        let is_unlock = is_post && path == "/unlock";
        match self.gate.entry(&head.headers, !path.starts_with("/live/")) {
            Entry::Closed if is_unlock => {
                self.unlock_with_token(&Form::read(client, body, LONGEST_OF_STRANGERS).await?).await
            }
            Entry::Closed => {
                if head.method == Method::GET && !path.starts_with("/live/") {
                    self.announce_link();
                }
                let page = closed(self.gate.has_token(), None);
                Ok((StatusCode::UNAUTHORIZED, page).into_response())
            }
            Entry::Locked { csrf } if is_unlock => {
                let form = Form::read(client, body, LONGEST_OF_STRANGERS).await?;
                form.check(&csrf)?;
                self.unlock(&head.headers, &csrf, &form).await
            }
            Entry::Locked { csrf } => {
                let page = locked(&csrf, self.has_passphrase(), self.gate.has_token(), None);
                Ok((StatusCode::UNAUTHORIZED, page).into_response())
            }
            Entry::Open { csrf } => {
                if !client.admit() {
                    return Err(Failure::Plain(StatusCode::SERVICE_UNAVAILABLE, en::TOO_MANY));
                }
                let visit = Visit { csrf, read_only: self.app.read_only };
                let mut form = Form::default();
                if is_post {
                    form = Form::read(client, body, LONGEST_BODY).await?;
                    form.check(&visit.csrf)?;
                    if is_unlock {
                        return self.unlock(&head.headers, &visit.csrf, &form).await;
                    }
                    if path == "/lock" {
                        self.lock();
                        return Ok(Redirect::to("/").into_response());
                    }
                    if self.app.read_only && !stays_readable(&path) {
                        return Err(Failure::Plain(StatusCode::FORBIDDEN, en::READ_ONLY));
                    }
                }
                let mut request = Request::from_parts(head, Body::from(form.bytes));
                request.extensions_mut().insert(visit.clone());
                let Ok(mut response) = self.views.clone().call(request).await;
                let failure = response.extensions_mut().remove::<Failure>();
                let failure = failure.or_else(|| unread_by_a_view(&response));
                Ok(match failure {
                    Some(failure) => failure.page(&visit, &self.app.advice),
                    None => response,
                })
            }
        }
    }

    fn enter(&self, head: &http::request::Parts) -> Result<Response, Failure> {
        let query = head.uri.query().unwrap_or_default();
        let shown = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "key");
        let shown = shown.map(|(_, key)| Zeroizing::new(key.into_owned())).unwrap_or_default();
        match self.gate.enter(&shown) {
            // Browsers do not send the cookie along where another page, such as a file with the link, leads. From this page they do.
            Some(value) if !is_of_owner(&head.headers) => {
                let cookie = cookie(&value, self.names.is_tls());
                Ok(([(SET_COOKIE, cookie), (REFRESH, "0; url=/".to_owned())], entered())
                    .into_response())
            }
            Some(value) => Ok(self.let_in(&value)),
            None => {
                self.announce_link();
                let page = closed(self.gate.has_token(), Some(en::LINK_USED));
                Ok((StatusCode::UNAUTHORIZED, page).into_response())
            }
        }
    }

    /// The address without the secret takes the place of the link in the browser's history.
    fn let_in(&self, value: &str) -> Response {
        let cookie = cookie(value, self.names.is_tls());
        ([(SET_COOKIE, cookie)], Redirect::to("/")).into_response()
    }

    async fn unlock_with_token(&self, form: &Form) -> Result<Response, Failure> {
        let shown = form.value("token").unwrap_or_default();
        match self.gate.enter_with_token(&shown).await? {
            Some(value) => Ok(self.let_in(&value)),
            None => {
                let page = closed(self.gate.has_token(), Some(en::WRONG_TOKEN));
                Ok((StatusCode::UNAUTHORIZED, page).into_response())
            }
        }
    }

    async fn unlock(
        &self,
        headers: &HeaderMap,
        csrf: &str,
        form: &Form,
    ) -> Result<Response, Failure> {
        if let Some(token) = form.value("token").filter(|_| !self.app.house.needs_passphrase()) {
            if self.gate.enter_with_token(&token).await?.is_none() {
                let page = locked(csrf, false, true, Some(en::WRONG_TOKEN.to_owned()));
                return Ok((StatusCode::UNAUTHORIZED, page).into_response());
            }
        } else {
            let passphrase = form.value("passphrase").unwrap_or_default();
            if !self.app.house.needs_passphrase() {
                return Err(Failure::Plain(StatusCode::FORBIDDEN, en::NO_PASSPHRASE));
            }
            if let Err(error) = self.gate.attempt(self.app.house.unlock(passphrase)).await {
                let wrong = match error {
                    sottovoce::Error::WrongKey { .. } => en::WRONG_PASSPHRASE.to_owned(),
                    error => sottovoce::with_causes(&error),
                };
                let page = locked(csrf, true, false, Some(wrong));
                return Ok((StatusCode::UNAUTHORIZED, page).into_response());
            }
        }
        self.gate.unlock(headers);
        Ok(Redirect::to("/").into_response())
    }

    fn has_passphrase(&self) -> bool {
        self.app.house.needs_passphrase()
    }

    fn lock(&self) {
        self.gate.lock();
        if self.gate.lock_idle() {
            self.locked();
        }
    }

    /// What follows once every session is locked.
    fn locked(&self) {
        self.app.lock();
        // A browser in which the passphrase can be typed needs no new link.
        if !self.has_passphrase() {
            self.announce_link();
        }
    }

    /// Tells the owner of a new link, unless the last one still lets a browser in. Whoever has the token needs none.
    fn announce_link(&self) {
        if self.gate.has_token() {
            return;
        }
        match self.gate.next_link() {
            Ok(Some(key)) => (self.announce)(self.address_of(&key)),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "no new link could be made"),
        }
    }

    /// Locks what has been idle too long. Never ends.
    async fn watch(&self) {
        loop {
            tokio::time::sleep(SWEEP).await;
            if self.gate.lock_idle() {
                self.locked();
            }
        }
    }
}

/// Why a request reached no view. What the router says of it is for programmers.
fn unread_by_a_view(response: &Response) -> Option<Failure> {
    let status = response.status();
    let unclear = [
        StatusCode::BAD_REQUEST,
        StatusCode::UNPROCESSABLE_ENTITY,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        StatusCode::METHOD_NOT_ALLOWED,
    ];
    unclear.contains(&status).then_some(Failure::Unclear(status))
}

/// Whether nobody but the owner opened a link, by what the browser tells.
fn is_of_owner(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_none_or(|site| site == "none" || site == "same-origin")
}

impl From<TooManyGuesses> for Failure {
    fn from(_: TooManyGuesses) -> Self {
        Self::Plain(StatusCode::TOO_MANY_REQUESTS, en::TOO_MANY_GUESSES)
    }
}

/// The fields of a form.
#[derive(Default)]
struct Form {
    bytes: Bytes,
}

impl Form {
    /// The bytes are wiped once nobody has them any more. A passphrase may be in them.
    async fn read(client: &Client, body: Incoming, most: usize) -> Result<Self, Failure> {
        let read = client.read(body, most).await;
        Ok(Self { bytes: read.map_err(Failure::unread)?.into() })
    }

    fn value(&self, name: &str) -> Option<Zeroizing<String>> {
        let mut fields = form_urlencoded::parse(&self.bytes);
        fields.find(|(field, _)| field == name).map(|(_, value)| Zeroizing::new(value.into_owned()))
    }

    /// Refuses a form that no page of this session has made.
    fn check(&self, csrf: &str) -> Result<(), Failure> {
        let shown = self.value("csrf").unwrap_or_default();
        match same(csrf.as_bytes(), shown.as_bytes()) {
            true => Ok(()),
            false => Err(Failure::Plain(StatusCode::FORBIDDEN, en::FORGED)),
        }
    }
}

/// Answers one request.
async fn respond(
    door: Arc<Door>,
    request: Request<Incoming>,
    client: Client,
) -> http::Response<sottovoce_net::Body> {
    let response = door.answer(request, &client).await.unwrap_or_else(Failure::into_response);
    client
        .hold(finished(response))
        .unwrap_or_else(|busy| finished(Failure::unread(busy).into_response()))
}

/// An answer with the headers that every one has.
fn finished(mut response: Response) -> http::Response<sottovoce_net::Body> {
    reply::protect(response.headers_mut());
    let close = HeaderValue::from_static("close");
    match response.status() {
        StatusCode::METHOD_NOT_ALLOWED => {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
        }
        // The rest of such a request is unread.
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
            response.headers_mut().insert(CONNECTION, close);
        }
        _ => {}
    }
    response.map(sottovoce_net::Body::new)
}

/// Serves until `stop` is cancelled. Answers in progress then have a moment.
pub(crate) async fn serve(listener: Listener, door: Arc<Door>, stop: CancellationToken) {
    let mut limits = Limits::default();
    (limits.head, limits.body, limits.unread) = (ASKING, ASKING, UNREAD);
    // Whoever has no cookie stays a stranger, also while a passphrase is tried.
    (limits.strangers, limits.strangers_from_one_address) = (STRANGERS, STRANGERS);
    let answering = Arc::clone(&door);
    let answer = move |request, client| respond(Arc::clone(&answering), request, client);
    tokio::select! {
        _ = sottovoce_net::serve(listener, limits, answer, &stop, None) => {}
        () = door.watch() => {}
    }
    door.app.house.close().await;
}
