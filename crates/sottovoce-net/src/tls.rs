//! TLS with a certificate that is given

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be used for TLS: {reason}", path.display())]
#[non_exhaustive]
pub struct TlsError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

pub(crate) fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let wrong = |path: &Path, reason: String| TlsError { path: path.to_owned(), reason };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_and_what_is_no_key_is_named() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let (certificate, key) = (folder.join("localhost.pem"), folder.join("localhost.key.pem"));
        let missing = Path::new("/nowhere.pem");
        for (one, other, wrong, reason) in [
            (missing, &*key, missing, "No such file"),
            (&*certificate, missing, missing, "No such file"),
            (&*key, &*key, &*key, "no certificate"),
            (&*certificate, &*certificate, &*certificate, "no "),
        ] {
            let Err(error) = acceptor(one, other) else { panic!("{} passed", wrong.display()) };
            assert_eq!(error.path, wrong);
            let text = error.to_string();
            assert!(text.contains(reason) && text.starts_with(wrong.to_str().unwrap()), "{text}");
        }
        acceptor(&certificate, &key).unwrap();
    }
}
