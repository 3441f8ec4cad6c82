//! A small HTTP client, which can also send what no client would

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A connection that is kept.
pub(crate) struct Connection {
    pub(crate) stream: BufReader<TcpStream>,
    address: SocketAddr,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Whether the body ended as the head announced.
    pub(crate) is_whole: bool,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::with_capacity(64 << 10, stream), address })
    }

    pub(crate) async fn call(
        &mut self,
        method: &str,
        path: &str,
        token: &str,
        body: &[u8],
    ) -> std::io::Result<Answer> {
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        if !token.is_empty() {
            head += &format!("Authorization: Bearer {token}\r\n");
        }
        head += "\r\n";
        let mut request = head.into_bytes();
        request.extend(body);
        self.stream.write_all(&request).await?;
        self.answer().await
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await
    }

    pub(crate) async fn answer(&mut self) -> std::io::Result<Answer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, head, body: Vec::new(), is_whole: true };
        if let Some(length) = answer.header("content-length") {
            answer.body.resize(length.parse().unwrap(), 0);
            self.stream.read_exact(&mut answer.body).await?;
        } else if answer.header("transfer-encoding").is_some() {
            loop {
                let mut line = String::new();
                self.stream.read_line(&mut line).await?;
                let Ok(length) = usize::from_str_radix(line.trim(), 16) else {
                    answer.is_whole = false;
                    break;
                };
                let mut chunk = vec![0; length + 2];
                self.stream.read_exact(&mut chunk).await?;
                if length == 0 {
                    break;
                }
                answer.body.extend(&chunk[..length]);
            }
        }
        Ok(answer)
    }
}
