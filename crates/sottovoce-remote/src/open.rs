//! Opens a remote by its address

use std::sync::Arc;

use url::Url;

use crate::address::{other, place};
use crate::credentials::Credentials;
use crate::folder::Folder;
#[cfg(feature = "http")]
use crate::object_store::{buckets, webdav::webdav};
use crate::remote::{Remote, Result};
#[cfg(feature = "http")]
use crate::retry::Retrying;

/// The addresses of remotes, each with the credentials that it takes, for help texts.
pub const ADDRESSES: &str = "  file:///folder          none; the folder may be on another disk or a file server
  s3://bucket/prefix      AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL
  az://container/prefix   AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN, AZURE_STORAGE_ENDPOINT
  gs://bucket/prefix      GOOGLE_APPLICATION_CREDENTIALS (a file) or GOOGLE_SERVICE_ACCOUNT_KEY (its text)
  https://server/folder   WebDAV: WEBDAV_USERNAME, WEBDAV_PASSWORD; http:// only on this machine";

/// Opens the remote at one of these [`ADDRESSES`]. No server is asked before the first operation.
///
/// Operations on servers are repeated like those of [`Retrying`](crate::Retrying). A bucket, container or folder must exist already. It needs
/// a Tokio runtime with timers and I/O.
///
/// # Errors
/// [`RemoteError`](crate::RemoteError) if the address has another form, contains credentials, or the credentials lack something.
#[cfg_attr(not(feature = "http"), allow(unused_variables, reason = "for servers alone"))]
pub fn open(address: &str, credentials: &Credentials) -> Result<Arc<dyn Remote>> {
    let Ok(url) = Url::parse(address) else {
        // It may contain a password.
        return Err(other(
            "the remote",
            "the address is not a URL, such as file:///folder or s3://bucket/prefix",
        ));
    };
    let place = place(&url);
    let has_user = !url.username().is_empty() || url.password().is_some();
    if has_user || url.query().is_some() || url.fragment().is_some() {
        let reason = "the address contains a user, a password or a query; \
                      credentials belong in the environment or a file";
        return Err(other(&place, reason));
    }
    match url.scheme() {
        "file" => {
            let path = url.to_file_path().ok().filter(|_| url.host().is_none());
            let wrong = || other(&place, "the address is not of the form file:///folder");
            // Nothing is repeated: what a file system refuses rarely passes within seconds.
            Ok(Arc::new(Folder::open(&path.ok_or_else(wrong)?)?))
        }
        #[cfg(feature = "http")]
        "s3" => retrying(buckets::s3(&url, &place, credentials), place),
        #[cfg(feature = "http")]
        "az" => retrying(buckets::azure(&url, &place, credentials), place),
        #[cfg(feature = "http")]
        "gs" => retrying(buckets::gcs(&url, &place, credentials), place),
        #[cfg(feature = "http")]
        "https" | "http" => retrying(webdav(&url, credentials), place),
        scheme => Err(other(&place, &format!("this build knows no remotes of the kind {scheme}:"))),
    }
}

/// A server, whose operations are repeated.
#[cfg(feature = "http")]
fn retrying(server: Result<impl Remote + 'static>, place: String) -> Result<Arc<dyn Remote>> {
    Ok(Arc::new(Retrying::new(server?, place)))
}
