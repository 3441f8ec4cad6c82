//! TLS with a certificate that is given.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::listen::ListenError;

/// Speaks TLS with this certificate, after which its chain may follow, and its key.
pub(super) fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, ListenError> {
    let wrong = |path: &Path, reason: String| ListenError::Tls { path: path.to_owned(), reason };
    let of_certificate = |error: &dyn std::fmt::Display| wrong(certificate, error.to_string());
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| of_certificate(&error))?;
    if chain.is_empty() {
        return Err(of_certificate(&"it holds no certificate"));
    }
    let secret =
        PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, error.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| of_certificate(&error))?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| of_certificate(&error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
