//! Answers of a server's own

use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

use crate::body::Body;

/// An answer with a body of this type.
pub fn reply(status: StatusCode, kind: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An answer in words.
pub fn plain(status: StatusCode, text: impl Into<Body>) -> Response<Body> {
    reply(status, "text/plain; charset=utf-8", text)
}

/// An answer as JSON. What cannot be written as JSON is an error of the server's.
pub fn json(status: StatusCode, value: &impl serde::Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(text) => reply(status, "application/json", text),
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, Body::empty()),
    }
}

/// The last answer on its connection, as the rest of the request is not read.
#[must_use]
pub fn closing(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
