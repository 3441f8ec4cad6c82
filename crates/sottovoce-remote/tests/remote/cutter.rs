//! A TCP proxy that cuts connections in the middle

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// Where a connection is cut.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cut {
    /// After so many bytes to the server.
    Upload(usize),
    /// After so many bytes of the answers.
    Answer(usize),
}

pub(crate) struct Cutter {
    pub(crate) address: SocketAddr,
    cuts: Arc<AtomicUsize>,
}

impl Cutter {
    /// Listens, and cuts the first `count` connections that get so far.
    pub(crate) async fn start(target: SocketAddr, cut: Cut, count: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let cuts = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&cuts);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let counter = Arc::clone(&counter);
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(target).await else { return };
                    let (up, down) = match cut {
                        Cut::Upload(bytes) => (bytes, usize::MAX),
                        Cut::Answer(bytes) => (usize::MAX, bytes),
                    };
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    // The first that ends drops both connections.
                    tokio::select! {
                        () = pump(from_client, to_server, up, &counter, count) => {}
                        () = pump(from_server, to_client, down, &counter, count) => {}
                    }
                });
            }
        });
        Self { address, cuts }
    }

    /// How many connections were cut.
    pub(crate) fn cuts(&self) -> usize {
        self.cuts.load(Ordering::Relaxed)
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut left: usize,
    cuts: &AtomicUsize,
    count: usize,
) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if length > left && cuts.fetch_add(1, Ordering::Relaxed) < count {
            to.write_all(&buffer[..left]).await.ok();
            return;
        }
        left = left.checked_sub(length).unwrap_or(usize::MAX);
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
