//! Opens a remote by its address

use std::sync::Arc;

use url::Url;

#[cfg(any(feature = "s3", feature = "azure", feature = "gcs"))]
use crate::address::bucket;
use crate::address::{other, place};
use crate::credentials::Credentials;
use crate::folder::Folder;
use crate::remote::{Remote, Result};
#[cfg(feature = "http")]
use crate::retry::Retrying;

/// Opens the remote at an address. No server is asked before the first operation.
///
/// | address | remote | of the feature |
/// |---|---|---|
/// | `file:///folder` | a folder that exists, also on another disk or a file server | |
/// | `s3://bucket/prefix` | S3 | `s3` |
/// | `az://container/prefix` | Azure Blob Storage | `azure` |
/// | `gs://bucket/prefix` | Google Cloud Storage | `gcs` |
/// | `https://server/folder` | a WebDAV server, with `http://` on this machine alone | `webdav` |
///
/// Operations on servers are repeated like those of [`Retrying`](crate::Retrying). A bucket, container or folder must exist already. It needs
/// a Tokio runtime with timers and I/O.
///
/// # Errors
/// [`RemoteError`](crate::RemoteError) if the address has another form, contains credentials, or the credentials lack something.
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
    if url.scheme() == "file" {
        let path = url.to_file_path().ok().filter(|_| url.host().is_none());
        let path =
            path.ok_or_else(|| other(&place, "the address is not of the form file:///folder"))?;
        // Nothing is repeated: what a file system refuses rarely passes within seconds.
        return Ok(Arc::new(Folder::open(&path)?));
    }
    server(&url, place, credentials)
}

#[cfg_attr(not(feature = "http"), allow(unused_variables, reason = "for servers alone"))]
fn server(url: &Url, place: String, credentials: &Credentials) -> Result<Arc<dyn Remote>> {
    let server = match url.scheme() {
        #[cfg(feature = "s3")]
        "s3" => crate::object_store::buckets::s3(bucket(url, &place)?, credentials)?,
        #[cfg(feature = "azure")]
        "az" => crate::object_store::buckets::azure(bucket(url, &place)?, credentials)?,
        #[cfg(feature = "gcs")]
        "gs" => crate::object_store::buckets::gcs(bucket(url, &place)?, credentials)?,
        #[cfg(feature = "webdav")]
        "https" | "http" => crate::object_store::webdav::webdav(url, credentials)?,
        scheme => {
            return Err(other(
                &place,
                &format!("this build knows no remotes of the kind {scheme}:"),
            ));
        }
    };
    #[cfg(feature = "http")]
    return Ok(Arc::new(Retrying::new(server, place)));
}
