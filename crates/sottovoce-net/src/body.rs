//! Bodies of answers: a whole one, or pieces as they come

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use tokio::sync::mpsc;

use crate::memory::Held;

/// The body of an answer.
pub struct Body {
    content: UnsyncBoxBody<Bytes, io::Error>,
    /// Whether the connection had time to send what came before it breaks off.
    is_sent: bool,
    /// The memory that was taken for it.
    held: Option<Arc<Held>>,
    /// What is kept until the last piece is sent.
    kept: Option<Arc<dyn Send + Sync>>,
}

/// A piece of an answer, with the memory that is given back and what is kept until it is sent. A body is dropped earlier, with its
/// last piece unsent.
struct HeldPiece {
    piece: Bytes,
    _held: Option<Arc<Held>>,
    _kept: Option<Arc<dyn Send + Sync>>,
}

impl AsRef<[u8]> for HeldPiece {
    fn as_ref(&self) -> &[u8] {
        &self.piece
    }
}

#[derive(Debug)]
struct Pieces {
    pieces: mpsc::Receiver<Bytes>,
    is_complete: Arc<AtomicBool>,
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
    let body = Body::new(Pieces { pieces, is_complete: Arc::clone(&is_complete) });
    (Sender { pieces: sender, is_complete }, body)
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
    /// A body of any kind.
    pub fn new<B>(content: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let content = content.map_err(io::Error::other).boxed_unsync();
        Self { content, is_sent: false, held: None, kept: None }
    }

    /// The body of an answer that has none.
    pub fn empty() -> Self {
        Self::new(Empty::new())
    }

    /// The same body, which keeps something until the last piece is sent.
    pub(crate) fn keeping(self, kept: impl Send + Sync + 'static) -> Self {
        Self { kept: Some(Arc::new(kept)), ..self }
    }

    /// The same body with memory that was taken for it, until the last piece is sent.
    #[must_use]
    pub fn holding(self, held: Held) -> Self {
        Self { held: Some(Arc::new(held)), ..self }
    }

    /// The length of a whole body that has no memory yet.
    pub(crate) fn unheld(&self) -> Option<u64> {
        if self.held.is_some() { None } else { http_body::Body::size_hint(&self.content).exact() }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body")
            .field("length", &http_body::Body::size_hint(&self.content))
            .finish_non_exhaustive()
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(whole: T) -> Self {
        Self::new(Full::new(whole.into()))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let frame = ready!(Pin::new(&mut self.content).poll_frame(context));
        // An error would discard what is not sent yet.
        if matches!(frame, Some(Err(_))) && !std::mem::replace(&mut self.is_sent, true) {
            // What nobody can send to any more breaks off at once.
            self.content = pieces(1).1.content;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let (held, kept) = (self.held.clone(), self.kept.clone());
        let hold = |piece| Bytes::from_owner(HeldPiece { piece, _held: held, _kept: kept });
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(hold))))
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.content.size_hint()
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        Poll::Ready(match ready!(self.pieces.poll_recv(context)) {
            Some(piece) => Some(Ok(Frame::data(piece))),
            None if self.is_complete.load(Ordering::Acquire) => None,
            None => Some(Err(io::ErrorKind::ConnectionAborted.into())),
        })
    }
}
