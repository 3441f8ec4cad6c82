//! Answers

use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{Response, StatusCode};
use sottovoce_net::Body;

use crate::api::Problem;
use crate::error::Error;

const PROBLEM: &str = "application/problem+json";

/// An answer of which nobody keeps a copy on the way.
pub(super) fn sealed(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        HeaderName::from_static("x-content-type-options"),
        HeaderValue::from_static("nosniff"),
    );
    response
}

pub(super) fn whole(kind: &'static str, body: impl Into<Body>) -> Response<Body> {
    sealed(sottovoce_net::reply(StatusCode::OK, kind, body))
}

pub(super) fn json(status: StatusCode, value: &impl serde::Serialize) -> Response<Body> {
    sealed(sottovoce_net::json(status, value))
}

pub(super) fn nothing((): ()) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// The answer to a request that failed.
pub(super) fn problem(error: &Error) -> Response<Body> {
    let (status, code) = error.answer();
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // What an operator has to know is in the log. Clients are not told the names of hosts and files.
    let title = match status.is_server_error()
        && !matches!(error, Error::Busy | Error::Unavailable | Error::Damaged { .. })
    {
        true => "the server cannot do this now".to_owned(),
        false => error.to_string(),
    };
    let mut response = of(status, code, &title, error.help());
    let headers = response.headers_mut();
    if let Some(seconds) = error.retry_after() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// The answer to a method that the path does not have.
pub(super) fn not_allowed(methods: &str) -> Response<Body> {
    let title = "the path does not have this method";
    let mut response =
        of(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", title, Some("see /openapi.json"));
    if let Ok(methods) = HeaderValue::from_str(methods) {
        response.headers_mut().insert(ALLOW, methods);
    }
    response
}

fn of(status: StatusCode, code: &str, title: &str, help: Option<&str>) -> Response<Body> {
    let mut response = json(status, &Problem::new(status.as_u16(), code, title, help));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
    response
}
