//! Hostile clients, which every server has to stand: its memory stays near what it was at rest, and others are answered as before.
//!
//! ```ignore
//! if !is_alone("hostile::memory_stays_small") { return }      // nobody else uses memory in this process
//! let hostile = Hostile::of(address, async || ask_something().await).await;
//! hostile.unfinished("POST /api/chat HTTP/1.1\r\nHost: localhost\r\n", 20, 31 << 20).await;
//! ```
//!
//! The allocator keeps what was freed. Where two kinds of clients together would leave too much of it, each has a test of its own.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

use std::io::Write;
use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How much more memory than at rest a server may use.
const MORE: usize = 64 << 20;
/// Within which time others are answered, unless it took a tenth of that already at rest.
const SOON: Duration = Duration::from_millis(100);
/// How often others ask.
const TIMES: usize = 9;
/// How long a hostile client tries to send what the server does not read.
const PUSHING: Duration = Duration::from_secs(2);
/// The files that a process opens besides connections.
const OTHER_FILES: usize = 300;

const ALONE: &str = "SOTTOVOCE_TEST_ALONE";

/// Whether this test is alone in its process. If not, it is run in a process of its own.
pub fn is_alone(name: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args([name, "--exact", "--nocapture"]).env(ALONE, "1");
    let output = test.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    text.lines().filter(|line| line.starts_with("SKIPPED")).for_each(note);
    false
}

/// A server, and how it was at rest.
pub struct Hostile<A> {
    address: SocketAddr,
    /// Asks as others do, and checks the answer.
    ask: A,
    memory: usize,
    time: Duration,
}

impl<A: AsyncFn()> Hostile<A> {
    /// The server at this address, of which others ask something.
    pub async fn of(address: SocketAddr, ask: A) -> Self {
        let mut hostile = Self { address, ask, memory: 0, time: Duration::ZERO };
        hostile.median().await;
        hostile.time = hostile.median().await;
        hostile.memory = resident();
        hostile
    }

    /// Many connections that say nothing, or begin a head and do not end it.
    pub async fn silent(&self, count: usize) {
        let most = files().saturating_sub(OTHER_FILES) / 2;
        if most < count {
            note(&format!("SKIPPED: {most} of {count} connections were tried (see ulimit -n)"));
        }
        let mut silent = Vec::new();
        for at in 0..count.min(most) {
            let mut stream = self.connect().await;
            if at % 2 == 0 {
                drop(stream.write_all(b"GET / HTTP/1.1\r\nHost: lo").await);
            }
            silent.push(stream);
        }
        self.check("silent connections").await;
    }

    /// Heads that never end.
    pub async fn endless_heads(&self, count: usize) {
        let mut all = Vec::new();
        for _ in 0..count {
            let mut stream = self.connect().await;
            drop(stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ").await);
            push(&mut stream, 4 << 20).await;
            all.push(stream);
        }
        self.check("endless heads").await;
    }

    /// Lines that never end.
    pub async fn endless_lines(&self, count: usize) {
        let mut all = Vec::new();
        for _ in 0..count {
            let mut stream = self.connect().await;
            push(&mut stream, 4 << 20).await;
            all.push(stream);
        }
        self.check("endless lines").await;
    }

    /// Requests with this head whose bodies lack their last byte.
    pub async fn unfinished(&self, head: &str, count: usize, bytes: usize) {
        self.unfinished_after(
            &format!("{head}Content-Length: {}\r\n\r\n", bytes + 1),
            count,
            bytes,
        )
        .await;
    }

    /// This, and then so many bytes of something that is never whole.
    pub async fn unfinished_after(&self, begin: &str, count: usize, bytes: usize) {
        let sent = (0..count).map(|_| async {
            let mut stream = self.connect().await;
            drop(stream.write_all(begin.as_bytes()).await);
            push(&mut stream, bytes).await;
            stream
        });
        let mut all = Vec::new();
        for sent in sent {
            all.push(sent.await);
        }
        self.check("unfinished bodies").await;
    }

    /// Requests whose answers nobody reads.
    pub async fn unread(&self, request: &str, count: usize) {
        let mut all = Vec::new();
        for _ in 0..count {
            let mut stream = self.connect().await;
            drop(stream.write_all(request.as_bytes()).await);
            all.push(stream);
        }
        tokio::time::sleep(PUSHING).await;
        self.check("unread answers").await;
        let mut answered = 0;
        for stream in &mut all {
            let mut first = [0; 12];
            let read = tokio::time::timeout(PUSHING, stream.read_exact(&mut first)).await;
            answered += usize::from(matches!(read, Ok(Ok(_))) && &first == b"HTTP/1.1 200");
        }
        assert!(answered > 0, "no unread answer has begun");
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// The median time of an answer.
    async fn median(&self) -> Duration {
        let mut times = Vec::new();
        for _ in 0..TIMES {
            let begun = Instant::now();
            (self.ask)().await;
            times.push(begun.elapsed());
        }
        times.sort();
        times[TIMES / 2]
    }

    /// Looks at the server while hostile clients are there.
    async fn check(&self, what: &str) {
        let memory = resident();
        assert!(
            memory < self.memory + MORE,
            "{what}: {} MiB more than at rest",
            (memory - self.memory) >> 20
        );
        let time = self.median().await;
        assert!(
            time < SOON.max(self.time * 10),
            "{what}: others wait {time:?}, and at rest {:?}",
            self.time
        );
        let memory = resident().saturating_sub(self.memory) >> 20;
        note(&format!("{what}: {memory} MiB more than at rest, others wait {time:?}"));
    }
}

/// Sends so many bytes, unless the server closes or reads no more.
async fn push(stream: &mut TcpStream, bytes: usize) {
    let piece = vec![b'x'; 64 << 10];
    let mut left = bytes;
    while left > 0 {
        let some = &piece[..left.min(piece.len())];
        match tokio::time::timeout(PUSHING, stream.write_all(some)).await {
            Ok(Ok(())) => left -= some.len(),
            _ => return,
        }
    }
}

/// The memory of this process, without the pages of its own file, which are read as they are needed.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() << 10
}

/// How many files this process may open.
fn files() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap_or(usize::MAX)
}

/// Says something also of a test that passes.
fn note(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}
