//! HTTPS with a certificate that is given, and where plain HTTP is refused

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sottovoce_team_server::{Error, listen, listen_plain, listen_tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::harness::{Member, Server, Setup, engines, message};

const LOOPBACK: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

/// A certificate of localhost that is valid for a hundred years, and its key.
fn files() -> [PathBuf; 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sottovoce-net/tests/fixtures");
    ["localhost.pem", "localhost.key.pem"].map(|name| folder.join(name))
}

async fn start(setup: &Setup) -> (Server, Member) {
    let [certificate, key] = files();
    let listening = listen_tls(LOOPBACK.into(), &certificate, &key).await.unwrap();
    let server = setup.start_at(listening, Arc::clone(&setup.clock) as _).await;
    let owner = server.owner().await;
    (server, owner)
}

/// Sends one request over TLS, and returns the whole answer.
async fn ask(address: SocketAddr, request: &str) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&files()[0]).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let socket = TcpStream::connect(address).await.unwrap();
    let name = "localhost".try_into().unwrap();
    let mut tls = TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap();
    tls.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tls.read_to_string(&mut answer).await.unwrap();
    answer
}

/// A request of a member.
fn request(owner: &Member, method: &str, rest: &str, body: &str) -> String {
    format!(
        "{method} {} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        owner.path(rest),
        owner.token,
        body.len()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_shares_over_https_and_a_plain_request_is_refused() {
    for engine in engines().await {
        let (server, owner) = start(&Setup::new(engine)).await;
        let created =
            ask(server.address, &request(&owner, "POST", "context/conversations", "")).await;
        assert!(created.starts_with("HTTP/1.1 201"), "{created}");
        let id = created.split('"').nth(3).unwrap();
        // The body is longer than one record of TLS.
        let records: Vec<_> = (0..1000).map(message).collect();
        let body = serde_json::json!({ "records": records }).to_string();
        let path = format!("context/conversations/{id}");
        let append = request(&owner, "POST", &format!("{path}/messages"), &body);
        let appended = ask(server.address, &append).await;
        assert!(appended.ends_with("\"last\":1000}"), "{appended}");
        let page = ask(server.address, &request(&owner, "GET", &path, "")).await;
        assert_eq!(page.matches("\"pos\":").count(), 1000);

        let mut plain = TcpStream::connect(server.address).await.unwrap();
        plain.write_all(request(&owner, "GET", &path, "").as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = plain.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.contains("HTTP/1.1") && !answer.contains("pos"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_begins_tls_is_cut_off_and_keeps_nobody_waiting() {
    for engine in engines().await {
        let mut setup = Setup::new(engine);
        setup.limits.net.head = Duration::from_millis(300);
        let (server, owner) = start(&setup).await;
        let began = Instant::now();
        let mut silent = TcpStream::connect(server.address).await.unwrap();
        let answer = ask(server.address, &request(&owner, "GET", "", "")).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(silent.read_to_end(&mut Vec::new()).await.unwrap(), 0);
        assert!(began.elapsed() >= setup.limits.net.head);
        // It does not delay the end either.
        let _silent = TcpStream::connect(server.address).await.unwrap();
        server.stop.cancel();
        server.task.await.unwrap();
    }
}

#[tokio::test]
async fn a_file_that_is_no_certificate_is_named() {
    let [certificate, key] = files();
    for (certificate, key, wrong) in [
        (Path::new("/nowhere.pem"), &*key, "/nowhere.pem"),
        (&*certificate, Path::new("/nowhere.pem"), "/nowhere.pem"),
        (&*key, &*key, "localhost.key.pem"),
    ] {
        let error = listen_tls(LOOPBACK.into(), certificate, key).await.unwrap_err();
        assert!(matches!(&error, Error::Tls(error) if error.path.ends_with(wrong)), "{error}");
        assert!(error.help().is_some());
    }
}

#[tokio::test]
async fn plain_http_beyond_this_machine_has_to_be_asked_for() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let refused = listen(address.parse().unwrap()).await.unwrap_err();
        assert!(matches!(refused, Error::PlainHttp { .. }), "{refused}");
    }
    listen(LOOPBACK.into()).await.unwrap();
    listen_plain(([0, 0, 0, 0], 0).into()).await.unwrap();
}
