//! What the clients of all services share: one attempt a request, checked endpoints, and errors without credentials

use ::object_store::RetryConfig;
use url::{Host, Url};

use super::connector::Connector;
use crate::error::{Action, ErrorKind, RemoteError};
use crate::remote::Result;

/// Whole operations are repeated, not requests: the rest of an object that was cut off may be of a newer one.
pub(super) fn never() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

pub(super) fn error(kind: ErrorKind, place: &str, reason: &str) -> RemoteError {
    RemoteError::new(kind, Action::Open, place, reason)
}

/// What `object_store` says of a configuration may repeat it.
pub(super) fn unusable(place: &str) -> RemoteError {
    error(ErrorKind::Other, place, "the credentials or the endpoint do not have the right form")
}

/// The client for an endpoint that the credentials name, or for the service's own.
pub(super) fn connector(place: &str, endpoint: Option<&str>) -> Result<Connector> {
    let Some(endpoint) = endpoint else { return Ok(Connector::default()) };
    let url = Url::parse(endpoint).map_err(|_| unusable(place))?;
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        return Err(error(ErrorKind::Other, place, "the endpoint contains a password or a query"));
    }
    let (is_local, is_plain) = (is_local(&url), url.scheme() == "http");
    if url.scheme() != "https" && !(is_plain && is_local) {
        return Err(error(
            ErrorKind::Other,
            place,
            "the endpoint must start with https://, or be on this machine",
        ));
    }
    Ok(Connector { is_local, is_plain, ..Connector::default() })
}

/// Whether a server runs on this machine. Names other than `localhost` are not looked up.
fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}
