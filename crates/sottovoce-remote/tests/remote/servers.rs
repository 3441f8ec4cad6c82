//! Real servers, which `.ci/remotes` starts. It hands over a file with lines of an address and a file of credentials.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use sottovoce_remote::testing::remote_contract;
use sottovoce_remote::{Credentials, ErrorKind, Remote, open};

use crate::cutter::{Cut, Cutter};
use crate::opening::credentials;

/// The variable that names the file.
const REMOTES: &str = "SOTTOVOCE_REMOTES";

/// A server with a bucket, a container or a folder that exists.
struct Server {
    address: String,
    credentials: String,
}

impl Server {
    fn open(&self) -> Arc<dyn Remote> {
        open(&self.address, &credentials(&self.credentials)).unwrap()
    }

    /// Where it listens.
    fn socket(&self) -> SocketAddr {
        let text = format!("{}\n{}", self.address, self.credentials);
        let (_, rest) = text.split_once("127.0.0.1:").unwrap();
        let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
        SocketAddr::from(([127, 0, 0, 1], port.parse().unwrap()))
    }

    fn with(&self, from: &str, to: &str) -> Self {
        let replace = |text: &str| text.replace(from, to);
        Self { address: replace(&self.address), credentials: replace(&self.credentials) }
    }
}

fn servers() -> Vec<Server> {
    let Ok(list) = std::env::var(REMOTES) else {
        // The test harness keeps what a test prints if it passes, but not this.
        let text = "is not set; no real server has been tried. `.ci/remotes` sets it";
        std::io::stderr().write_all(format!("SKIPPED: {REMOTES} {text}\n").as_bytes()).unwrap();
        return Vec::new();
    };
    let list = std::fs::read_to_string(list).unwrap();
    let server = |line: &str| {
        let (address, file) = line.split_once(' ').unwrap();
        // As a user has it: in a file of its own.
        Credentials::from_file(Path::new(file)).unwrap();
        let credentials = std::fs::read_to_string(file).unwrap();
        Server { address: address.to_owned(), credentials }
    };
    list.lines().map(server).collect()
}

#[tokio::test]
async fn real_servers_keep_the_contract() {
    for server in servers() {
        let began = std::time::Instant::now();
        let result = remote_contract(&*server.open(), "contract").await;
        result.unwrap_or_else(|violation| panic!("{}: {violation}", server.address));
        eprintln!("{}: the contract holds ({:?})", server.address, began.elapsed());
    }
}

#[tokio::test]
async fn real_servers_tell_a_missing_container_and_wrong_credentials() {
    for server in servers() {
        let missing = server.with("sync-tests", "sync-missing").open();
        let mut results = vec![missing.list("a").await.map(drop)];
        if !server.credentials.contains("# only listings") {
            results.push(missing.get("a").await.map(drop));
            results.push(missing.put("a/b", "x".into()).await);
        }
        for error in results.into_iter().map(Result::unwrap_err) {
            assert_eq!(error.kind(), ErrorKind::NoContainer, "{error}");
        }
        // Moto says that it has deleted something there.
        let deleted = missing.delete("a").await.map_err(|error| error.kind());
        assert!(matches!(deleted, Ok(()) | Err(ErrorKind::NoContainer)), "{deleted:?}");
        if !server.credentials.contains("# not checked") {
            let stranger = server.with("correct", "mistaken").with("Eby8", "Eby9").open();
            let error = stranger.put("a", "x".into()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        }
    }
}

#[tokio::test]
async fn what_is_cut_in_the_middle_is_made_up_for() {
    for server in servers() {
        let bytes = |n: u8| bytes::Bytes::from(vec![n; 300_000]);
        for (n, cut) in
            (1..).zip([Cut::Upload(10), Cut::Upload(100_000), Cut::Answer(0), Cut::Answer(20)])
        {
            let cutter = Cutter::start(server.socket(), cut, 2).await;
            let through =
                server.with(&server.socket().to_string(), &cutter.address.to_string()).open();
            let name = format!("cut/{n}");
            through.put(&name, bytes(n)).await.unwrap_or_else(|error| panic!("{cut:?}: {error}"));
            assert!(cutter.cuts() >= 2, "{} {cut:?}: nothing was cut", server.address);
            let found = server.open().get(&name).await.unwrap().unwrap();
            if server.address.starts_with("http") && found != bytes(n) {
                // Wsgidav may end the write that was cut off after the one that took its place.
                server.open().put(&name, bytes(n)).await.unwrap();
                continue;
            }
            assert!(found == bytes(n), "{} {cut:?}: {} bytes", server.address, found.len());
        }
        for cut in [Cut::Answer(0), Cut::Answer(20), Cut::Answer(100_000)] {
            let cutter = Cutter::start(server.socket(), cut, 2).await;
            let through =
                server.with(&server.socket().to_string(), &cutter.address.to_string()).open();
            assert_eq!(through.get("cut/1").await.unwrap().unwrap(), bytes(1), "{cut:?}");
            assert!(cutter.cuts() >= 2, "{} {cut:?}: nothing was cut", server.address);
        }
        for cut in [Cut::Answer(0), Cut::Answer(20)] {
            let cutter = Cutter::start(server.socket(), cut, 2).await;
            let through =
                server.with(&server.socket().to_string(), &cutter.address.to_string()).open();
            assert_eq!(through.list("cut").await.unwrap(), ["1", "2", "3", "4"], "{cut:?}");
            through.delete("cut/4").await.unwrap();
            server.open().put("cut/4", "x".into()).await.unwrap();
        }
        for n in 1..=4 {
            server.open().delete(&format!("cut/{n}")).await.unwrap();
        }
    }
}

#[tokio::test]
async fn devices_that_write_at_once_see_each_others_objects() {
    for server in servers() {
        // Also the folders are new, which WebDAV servers have to create.
        let writers = (0..8).map(|device| {
            let remote = server.open();
            async move { remote.put(&format!("new/deep/{device}"), vec![device; 1000].into()).await }
        });
        for result in futures_util::future::join_all(writers).await {
            result.unwrap();
        }
        let expected: Vec<String> = (0..8).map(|device| device.to_string()).collect();
        assert_eq!(server.open().list("new/deep").await.unwrap(), expected);
        for name in expected {
            server.open().delete(&format!("new/deep/{name}")).await.unwrap();
        }
    }
}
