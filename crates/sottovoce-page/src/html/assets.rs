//! The files that browsers load: one stylesheet, one script, one icon, which are part of the program, and what they save.

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};

/// Changed with the program, so that no browser uses those of another one.
pub(crate) const STYLE: &str = concat!("/style.css?v=", env!("CARGO_PKG_VERSION"));
pub(crate) const SCRIPT: &str = concat!("/page.js?v=", env!("CARGO_PKG_VERSION"));
pub(crate) const ICON: &str = "/icon.svg";

/// The asset at a path. Assets tell nothing about the store, so nobody must be let in for them.
pub(crate) fn find(path: &str) -> Option<Response> {
    let (kind, text) = match path {
        "/style.css" => ("text/css; charset=utf-8", include_str!("../../assets/style.css")),
        "/page.js" => ("text/javascript; charset=utf-8", include_str!("../../assets/page.js")),
        "/icon.svg" | "/favicon.ico" => ("image/svg+xml", include_str!("../../assets/icon.svg")),
        _ => return None,
    };
    Some(([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], text).into_response())
}

/// A file of the store. Browsers save it and never show it.
pub(crate) fn download(kind: &'static str, name: &str, contents: impl IntoResponse) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (CONTENT_DISPOSITION, &*format!("attachment; filename=\"{name}\"")),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
    ];
    (headers, contents).into_response()
}
