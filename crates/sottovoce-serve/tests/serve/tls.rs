//! HTTPS with a certificate that is given.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::harness::Served;

/// A certificate of localhost that is valid for a hundred years, and its key.
fn files() -> [PathBuf; 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sottovoce-net/tests/fixtures");
    ["localhost.pem", "localhost.key.pem"].map(|name| folder.join(name))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_trusts_the_certificate_is_answered_and_a_plain_one_is_not() {
    let [certificate, key] = files();
    let served = Served::with_tls(&certificate, &key).await;
    let address = served.url.strip_prefix("http://").unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&certificate).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let socket = TcpStream::connect(address).await.unwrap();
    let name = "localhost".try_into().unwrap();
    let mut tls = TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap();
    let head = b"GET /api/version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    tls.write_all(head).await.unwrap();
    let mut answer = String::new();
    tls.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("0.33.0"), "{answer}");

    let mut plain = TcpStream::connect(address).await.unwrap();
    plain.write_all(head).await.unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
}
