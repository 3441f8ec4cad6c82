//! Bodies of requests, read within limits

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};

/// Why the body of a request could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is longer than allowed.
    #[error("the body of the request is too long")]
    TooLong,
    /// The client left, or sent something that is no body.
    #[error("the body of the request broke off")]
    Incomplete,
    /// It did not arrive in time.
    #[error("the body of the request did not arrive in time")]
    TooSlow,
}

/// Reads a body of at most `most` bytes, which must arrive within `time`.
///
/// # Errors
/// [`ReadError`]. The rest of the body is then unread, and an answer should close the connection.
pub async fn read(body: Incoming, most: usize, time: Duration) -> Result<Bytes, ReadError> {
    if body.size_hint().lower() > most as u64 {
        return Err(ReadError::TooLong);
    }
    match tokio::time::timeout(time, Limited::new(body, most).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(ReadError::TooLong),
        Ok(Err(_)) => Err(ReadError::Incomplete),
        Err(_) => Err(ReadError::TooSlow),
    }
}
