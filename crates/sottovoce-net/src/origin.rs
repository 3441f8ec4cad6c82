//! Web pages and programs made like them: whether one may ask, and what its browser must be told.
//!
//! A browser lets a page read the answers of another origin only if they name that origin, and asks before it sends much; see
//! the Fetch Standard, "CORS protocol".

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderName, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use crate::body::Body;
use crate::reply::plain;

/// Schemes of programs on this machine, which no page of the web can claim. Ollama lets in the same.
const LOCAL: [&str; 5] = ["app", "file", "tauri", "vscode-file", "vscode-webview"];

const REQUEST_PRIVATE: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Whether an origin is that of a program on this machine.
pub(crate) fn is_local(origin: &str) -> bool {
    origin.split_once("://").is_some_and(|(scheme, _)| LOCAL.contains(&scheme))
}

/// Whether an origin is the given one, which may end with `*` for every other end.
pub(crate) fn matches(pattern: &str, origin: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(begin) => origin.starts_with(begin),
        None => origin == pattern,
    }
}

/// The answer to a browser that asks whether a page may ask; `None` for any other request. Its origin was checked before.
pub fn preflight(method: &Method, headers: &HeaderMap) -> Option<Response<Body>> {
    let asked = headers.get(ACCESS_CONTROL_REQUEST_METHOD).filter(|_| method == Method::OPTIONS)?;
    let mut response = plain(StatusCode::NO_CONTENT, "");
    let told = response.headers_mut();
    told.insert(ACCESS_CONTROL_ALLOW_METHODS, asked.clone());
    told.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    if let Some(names) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        told.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    if headers.contains_key(REQUEST_PRIVATE) {
        told.insert(ALLOW_PRIVATE, HeaderValue::from_static("true"));
    }
    Some(response)
}

/// Lets the page that asked read the answer. Its origin was checked before.
pub fn readable<B>(mut response: Response<B>, origin: Option<HeaderValue>) -> Response<B> {
    if let Some(origin) = origin {
        let told = response.headers_mut();
        told.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        told.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
        told.append(VARY, HeaderValue::from(ORIGIN));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_may_ask_is_told_so_and_no_other_request_is_answered_early() {
        let mut headers = HeaderMap::new();
        assert!(preflight(&Method::OPTIONS, &headers).is_none());
        headers.insert(ACCESS_CONTROL_REQUEST_METHOD, HeaderValue::from_static("POST"));
        headers.insert(ACCESS_CONTROL_REQUEST_HEADERS, HeaderValue::from_static("authorization"));
        headers.insert(REQUEST_PRIVATE, HeaderValue::from_static("true"));
        assert!(preflight(&Method::POST, &headers).is_none());
        let told = preflight(&Method::OPTIONS, &headers).unwrap();
        assert_eq!(told.status(), StatusCode::NO_CONTENT);
        assert_eq!(told.headers()[ACCESS_CONTROL_ALLOW_METHODS], "POST");
        assert_eq!(told.headers()[ACCESS_CONTROL_ALLOW_HEADERS], "authorization");
        assert_eq!(told.headers()[ALLOW_PRIVATE], "true");
        let told = readable(told, Some(HeaderValue::from_static("app://obsidian.md")));
        assert_eq!(told.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], "app://obsidian.md");
        assert!(readable(Response::new(()), None).headers().is_empty());
    }
}
