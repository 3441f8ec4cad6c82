//! HTTPS with a certificate that is given, for an address that other machines can reach.

use std::path::Path;
use std::sync::Arc;

use sottovoce::SystemClock;
use sottovoce_page::{Page, PageError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_util::sync::CancellationToken;

use crate::harness::config;

#[tokio::test(flavor = "multi_thread")]
async fn over_tls_the_cookie_is_secure_and_other_names_are_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sottovoce-net/tests/fixtures");
    let [certificate, key] = ["localhost.pem", "localhost.key.pem"].map(|name| folder.join(name));
    let root = tempfile::tempdir().unwrap();
    let config = config(root.path(), &[("PAGE__TOKEN", "a long secret for this page")]);
    let everyone = "0.0.0.0:0".parse().unwrap();
    let page = || Page::new(config.clone(), Arc::new(SystemClock)).tls(&certificate, &key);
    let refused = page().listen(everyone).await.unwrap_err();
    assert!(matches!(refused, PageError::Unprotected { missing: "a host name", .. }));
    let listening = page().hosts(["localhost".to_owned()]).listen(everyone).await.unwrap();
    let (port, link) = (listening.address().port(), listening.link().unwrap());
    assert!(link.starts_with(&format!("https://localhost:{port}/enter?key=")), "{link}");
    let stop = CancellationToken::new();
    let serving = tokio::spawn(listening.serve(stop.clone()));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&certificate).unwrap()).unwrap();
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(tls));
    let ask = async |path: &str, host: &str| {
        let socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let name = "localhost".try_into().unwrap();
        let mut tls = connector.connect(name, socket).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        tls.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = tls.read_to_string(&mut answer).await;
        answer
    };
    let own = format!("localhost:{port}");
    assert!(ask("/", "pi.local").await.starts_with("HTTP/1.1 421"));
    assert!(ask("/", &own).await.starts_with("HTTP/1.1 401"));
    let path = link.split_once(&own).unwrap().1;
    let entered = ask(path, &own).await;
    assert!(
        entered.starts_with("HTTP/1.1 303") && entered.contains("__Host-sottovoce="),
        "{entered}"
    );
    assert!(entered.contains("; Secure"), "{entered}");
    stop.cancel();
    serving.await.unwrap();
}
