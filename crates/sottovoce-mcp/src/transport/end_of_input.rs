//! Detection of the end of input: the client has gone.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// A reader that signals the end of its input, so that other tasks stop waiting for the client.
pub(super) struct EndOfInput<R> {
    pub(super) input: R,
    pub(super) ended: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for EndOfInput<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.input).poll_read(cx, buffer);
        if let Poll::Ready(outcome) = &read
            && (outcome.is_err() || buffer.filled().len() == before)
        {
            self.ended.cancel();
        }
        read
    }
}
