//! A server that answers as a test says

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sottovoce_remote::{Remote, open};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::opening::credentials;

/// A server that answers each connection's first request as a function says, and keeps the heads of the requests.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) async fn start<F: Future<Output = ()> + Send + 'static>(
        answer: impl Fn(String, TcpStream) -> F + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let heads = Arc::clone(&requests);
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (heads, answer) = (Arc::clone(&heads), Arc::clone(&answer));
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = stream.read_u8().await else { return };
                        head.push(byte);
                    }
                    let head = String::from_utf8(head).unwrap();
                    heads.lock().unwrap().push(head.clone());
                    answer(head, stream).await;
                });
            }
        });
        Self { address, requests }
    }

    /// Always sends the same bytes.
    pub(crate) async fn says(answer: impl Into<Vec<u8>>) -> Self {
        let answer: Arc<[u8]> = answer.into().into();
        Self::start(move |_, mut stream| {
            let answer = Arc::clone(&answer);
            async move {
                stream.write_all(&answer).await.ok();
                stream.shutdown().await.ok();
                // What is still sent must not turn the end into a reset.
                while matches!(stream.read(&mut [0; 1024]).await, Ok(1..)) {}
            }
        })
        .await
    }

    /// Sends the first bytes, then the others for ever.
    pub(crate) async fn never_ends(first: &'static str, others: &str) -> Self {
        let others: Arc<str> = others.repeat(1 + 65_536 / others.len()).into();
        Self::start(move |_, mut stream| {
            let others = Arc::clone(&others);
            async move {
                stream.write_all(first.as_bytes()).await.ok();
                while stream.write_all(others.as_bytes()).await.is_ok() {}
            }
        })
        .await
    }

    pub(crate) fn webdav(&self) -> Arc<dyn Remote> {
        let lines = "WEBDAV_USERNAME=me\nWEBDAV_PASSWORD=hunter2";
        open(&format!("http://{}/dav", self.address), &credentials(lines)).unwrap()
    }

    pub(crate) fn s3(&self) -> Arc<dyn Remote> {
        let lines =
            "AWS_ACCESS_KEY_ID=me\nAWS_SECRET_ACCESS_KEY=hunter2\nAWS_SESSION_TOKEN=hunter3";
        let lines = format!("{lines}\nAWS_ENDPOINT_URL=http://{}", self.address);
        open("s3://bucket/pre", &credentials(&lines)).unwrap()
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// 4 KiB of a text as a chunk of a body without a length.
pub(crate) fn chunk(text: &str) -> String {
    format!("1000\r\n{}\r\n", text.repeat(4096 / text.len()))
}

pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// How a WebDAV server lists a folder without entries.
pub(crate) fn empty_folder(path: &str) -> String {
    let body = format!(
        "<multistatus xmlns=\"DAV:\"><response><href>{path}</href><propstat><prop>\
         <getlastmodified>Mon, 24 Nov 2025 00:00:00 GMT</getlastmodified><resourcetype><collection/></resourcetype>\
         </prop><status>HTTP/1.1 200 OK</status></propstat></response></multistatus>"
    );
    answer("207 Multi-Status", "", &body)
}

/// Nothing here needs the pauses between attempts to be long, but none may take for ever.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("it takes too long")
}
