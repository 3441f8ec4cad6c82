//! Bodies of answers: a short text, or pieces as they come from the model server.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body::Frame;
use tokio::sync::mpsc;

/// How many pieces wait for a client that reads slowly.
const WAITING: usize = 16;

/// The body of an answer.
pub(crate) enum Body {
    Whole(Option<Bytes>),
    Pieces(Receiver),
}

/// The pieces of an answer.
pub(crate) struct Receiver {
    pieces: mpsc::Receiver<Bytes>,
    is_complete: Arc<AtomicBool>,
    /// Whether the connection had time to send what came before it breaks off.
    is_sent: bool,
}

/// Where the pieces of an answer go. Unless it is told that the answer is complete, the connection breaks off at the end,
/// so that the client does not take what came for the whole.
pub(crate) struct Sender {
    pieces: mpsc::Sender<Bytes>,
    is_complete: Arc<AtomicBool>,
}

/// A body and the sender of its pieces.
pub(crate) fn pieces() -> (Sender, Body) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let is_complete = Arc::<AtomicBool>::default();
    let body = Receiver { pieces: receiver, is_complete: Arc::clone(&is_complete), is_sent: false };
    (Sender { pieces: sender, is_complete }, Body::Pieces(body))
}

impl Sender {
    /// Sends a piece. Returns whether the client took it in time.
    pub(crate) async fn send(&self, piece: Bytes, time: Duration) -> bool {
        matches!(tokio::time::timeout(time, self.pieces.send(piece)).await, Ok(Ok(())))
    }

    /// Returns once the client has left.
    pub(crate) async fn closed(&self) {
        self.pieces.closed().await;
    }

    pub(crate) fn complete(self) {
        self.is_complete.store(true, Ordering::Release);
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            Self::Whole(whole) => Poll::Ready(whole.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces(body) => match ready!(body.pieces.poll_recv(context)) {
                Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
                None if body.is_complete.load(Ordering::Acquire) => Poll::Ready(None),
                // An error would discard what is not sent yet.
                None if !std::mem::replace(&mut body.is_sent, true) => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                None => Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into()))),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Self::Whole(whole) => http_body::SizeHint::with_exact(
                whole.as_ref().map_or(0, |bytes| bytes.len() as u64),
            ),
            Self::Pieces(_) => http_body::SizeHint::default(),
        }
    }
}

/// An answer of this server's own, as JSON.
pub(crate) fn json(status: StatusCode, value: &impl serde::Serialize) -> Response<Body> {
    let text = serde_json::to_string(value).unwrap_or_default();
    let mut response = Response::new(Body::Whole(Some(text.into())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An error of this server's own, in the form that clients of either protocol expect. It holds no words.
pub(crate) fn error(is_openai: bool, status: StatusCode, reason: &str) -> Response<Body> {
    let error = match is_openai {
        true => serde_json::json!({ "error": {
            "message": reason, "type": "sottovoce", "param": null, "code": status.as_u16(),
        } }),
        false => serde_json::json!({ "error": reason }),
    };
    json(status, &error)
}
