//! Bodies of answers: a whole one, or pieces as they come

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio::sync::mpsc;

/// The body of an answer.
#[derive(Debug)]
pub struct Body(Content);

#[derive(Debug)]
enum Content {
    Whole(Option<Bytes>),
    Pieces {
        pieces: mpsc::Receiver<Bytes>,
        is_complete: Arc<AtomicBool>,
        /// Whether the connection had time to send what came before it breaks off.
        is_sent: bool,
    },
}

/// Where the pieces of an answer go. Unless it is told that the answer is complete, the connection breaks off at the end,
/// so that the client does not take what came for the whole.
#[derive(Debug)]
pub struct Sender {
    pieces: mpsc::Sender<Bytes>,
    is_complete: Arc<AtomicBool>,
}

/// A body and the sender of its pieces, of which `waiting` wait for a client that reads slowly.
pub fn pieces(waiting: usize) -> (Sender, Body) {
    let (sender, pieces) = mpsc::channel(waiting.max(1));
    let is_complete = Arc::<AtomicBool>::default();
    let body = Content::Pieces { pieces, is_complete: Arc::clone(&is_complete), is_sent: false };
    (Sender { pieces: sender, is_complete }, Body(body))
}

impl Sender {
    /// Sends a piece. Returns whether the client took it in time.
    pub async fn send(&self, piece: Bytes, time: Duration) -> bool {
        matches!(tokio::time::timeout(time, self.pieces.send(piece)).await, Ok(Ok(())))
    }

    /// Returns once the client has left.
    pub async fn closed(&self) {
        self.pieces.closed().await;
    }

    /// Ends the answer.
    pub fn complete(self) {
        self.is_complete.store(true, Ordering::Release);
    }
}

impl Body {
    /// The body of an answer that has none.
    pub fn empty() -> Self {
        Self(Content::Whole(None))
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(whole: T) -> Self {
        Self(Content::Whole(Some(whole.into())))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.0 {
            Content::Whole(whole) => Poll::Ready(whole.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Pieces { pieces, is_complete, is_sent } => {
                match ready!(pieces.poll_recv(context)) {
                    Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
                    None if is_complete.load(Ordering::Acquire) => Poll::Ready(None),
                    // An error would discard what is not sent yet.
                    None if !std::mem::replace(is_sent, true) => {
                        context.waker().wake_by_ref();
                        Poll::Pending
                    }
                    None => Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into()))),
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Content::Whole(None))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match &self.0 {
            Content::Whole(whole) => http_body::SizeHint::with_exact(
                whole.as_ref().map_or(0, |bytes| bytes.len() as u64),
            ),
            Content::Pieces { .. } => http_body::SizeHint::default(),
        }
    }
}
