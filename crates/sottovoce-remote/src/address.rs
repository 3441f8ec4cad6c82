//! Addresses of remotes, and how errors name them

use url::Url;

use crate::error::{Action, ErrorKind, RemoteError};

/// The address without what may be a password.
pub(crate) fn place(url: &Url) -> String {
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    let host = url.host_str().unwrap_or_default();
    format!("{}://{host}{port}{}", url.scheme(), url.path().trim_end_matches('/'))
}

pub(crate) fn other(place: &str, reason: &str) -> RemoteError {
    RemoteError::new(ErrorKind::Other, Action::Open, place, reason)
}
