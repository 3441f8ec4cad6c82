//! Bodies of requests, read within limits, and of answers

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::error::{Error, Result};

/// One permit is this many bytes.
const UNIT: usize = 1 << 10;

/// The memory for the bodies of all requests.
#[derive(Debug)]
pub(super) struct Memory(Arc<Semaphore>);

impl Memory {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new((bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// Reads a body of at most this many bytes. The memory is taken until the permit is dropped.
    pub(super) async fn read(
        &self,
        body: Incoming,
        most: usize,
        time: Duration,
    ) -> Result<(Bytes, OwnedSemaphorePermit)> {
        let too_large = || Error::TooLarge { what: "the body of this request", most };
        let announced = body.size_hint().exact().map(usize::try_from);
        let length = match announced {
            Some(Ok(length)) if length <= most => length,
            Some(_) => return Err(too_large()),
            // One that does not tell its length may need all.
            None => most,
        };
        let permits = u32::try_from(length / UNIT + 1).unwrap_or(u32::MAX);
        let permit =
            Arc::clone(&self.0).try_acquire_many_owned(permits).map_err(|_| Error::Busy)?;
        match tokio::time::timeout(time, Limited::new(body, most).collect()).await {
            Ok(Ok(collected)) => Ok((collected.to_bytes(), permit)),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
            Ok(Err(_)) => {
                Err(Error::Invalid { what: "the body of the request broke off".to_owned() })
            }
            Err(_) => Err(Error::TooSlow),
        }
    }
}

/// The body of an answer.
#[derive(Debug)]
pub(super) enum Body {
    Whole(Option<Bytes>),
    /// Pieces, and an error if they break off.
    Pieces(mpsc::Receiver<Option<Bytes>>),
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
            Self::Pieces(pieces) => Poll::Ready(match ready!(pieces.poll_recv(context)) {
                Some(Some(piece)) => Some(Ok(Frame::data(piece))),
                Some(None) => None,
                // Without the mark of its end, an answer has broken off.
                None => Some(Err(io::ErrorKind::ConnectionAborted.into())),
            }),
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
