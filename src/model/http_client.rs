//! How clients of HTTP servers begin: of model servers, and of those that the crates beside this one ask

#[cfg(feature = "tls")]
use std::sync::Arc;

use reqwest::ClientBuilder;
#[cfg(feature = "tls")]
use rustls::{ClientConfig, RootCertStore, crypto::ring};

use crate::error::Result;

/// Begins a client of HTTP servers.
///
/// If `is_encrypted`, it speaks HTTPS as well, which takes the feature `tls`, and believes the certificates that the system trusts. These
/// are read now. A client for plain HTTP needs none.
///
/// # Errors
/// [`crate::Error::Config`] if the system has no certificates, or TLS cannot be set up.
pub fn client_builder(is_encrypted: bool) -> Result<ClientBuilder> {
    let builder = reqwest::Client::builder();
    #[cfg(feature = "tls")]
    let builder = {
        let roots = if is_encrypted { system_roots()? } else { RootCertStore::empty() };
        builder.tls_backend_preconfigured(trusting(roots)?)
    };
    #[cfg(not(feature = "tls"))]
    let _ = is_encrypted;
    Ok(builder)
}

/// TLS for clients of other protocols. It believes the certificates that the system trusts.
///
/// # Errors
/// [`crate::Error::Config`] if the system has no certificates, or TLS cannot be set up.
#[cfg(feature = "tls")]
pub fn tls_config() -> Result<ClientConfig> {
    trusting(system_roots()?)
}

#[cfg(feature = "tls")]
fn trusting(roots: RootCertStore) -> Result<ClientConfig> {
    // Not the process's provider, which belongs to the host.
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(format!("cannot be set up: {error}")))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(feature = "tls")]
fn system_roots() -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match roots.is_empty() {
        true => Err(unusable(
            "this system has no certificates, by which servers are known: install them (Debian: ca-certificates), or name a file with them in \
             the environment's SSL_CERT_FILE"
                .to_owned(),
        )),
        false => Ok(roots),
    }
}

#[cfg(feature = "tls")]
fn unusable(reason: String) -> crate::error::Error {
    crate::error::Error::Config { place: "HTTPS".to_owned(), reason }
}
