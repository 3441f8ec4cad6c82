//! Addresses of remotes: their parts, and how errors name them

#[cfg(feature = "http")]
use url::Host;
use url::Url;

use crate::error::{Action, ErrorKind, RemoteError};
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
use crate::name::{is_name, is_part};
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
use crate::remote::Result;

/// A bucket or container of a service, and what stands before all names there.
#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
pub(crate) struct Bucket {
    pub(crate) name: String,
    pub(crate) prefix: String,
    /// The address, for errors.
    pub(crate) place: String,
}

#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
pub(crate) fn bucket(url: &Url, place: &str) -> Result<Bucket> {
    let name = url.host_str().unwrap_or_default();
    let prefix = url.path().trim_matches('/');
    if url.port().is_some() || !is_part(name) {
        return Err(other(
            place,
            "the address does not start with the name of a bucket or container",
        ));
    }
    if !prefix.is_empty() && !is_name(prefix) {
        return Err(other(place, "the prefix may contain letters, digits, '-', '_', '.' and '/'"));
    }
    Ok(Bucket { name: name.to_owned(), prefix: prefix.to_owned(), place: place.to_owned() })
}

/// The address without what may be a password.
pub(crate) fn place(url: &Url) -> String {
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    let host = url.host_str().unwrap_or_default();
    format!("{}://{host}{port}{}", url.scheme(), url.path().trim_end_matches('/'))
}

/// Whether a server runs on this machine. Names other than `localhost` are not looked up.
#[cfg(feature = "http")]
pub(crate) fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

pub(crate) fn other(place: &str, reason: &str) -> RemoteError {
    RemoteError::new(ErrorKind::Other, Action::Open, place, reason)
}
