//! The memory for bodies: of requests until they are handled, and of answers until they are sent

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body::Body;
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use zeroize::Zeroizing;

/// One permit is this many bytes.
const UNIT: usize = 1 << 10;
/// A body of so many bytes needs none: the number of connections limits those.
const SMALL: usize = 64 << 10;

/// The memory for the bodies that are not small, of all requests and answers of a server.
#[derive(Debug, Clone)]
pub struct Memory(Arc<Semaphore>);

/// The memory of a body, and the body if it was read. It is wiped and given back once nobody has the bytes any more.
#[derive(Debug)]
pub struct Held {
    bytes: Zeroizing<Vec<u8>>,
    permit: Option<OwnedSemaphorePermit>,
}

/// Why the body of a request could not be read, or that of an answer not be sent.
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
    /// The memory is in use. Later there may be some.
    #[error("all memory for bodies is in use; repeat the request later")]
    Busy,
}

impl ReadError {
    /// The status of the answer, which should close the connection: the rest of the body is unread.
    pub fn status(self) -> StatusCode {
        match self {
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Incomplete => StatusCode::BAD_REQUEST,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl Memory {
    /// So many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new((bytes / UNIT).clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// Takes memory for a body of this many bytes, before there is one.
    ///
    /// # Errors
    /// [`ReadError::Busy`].
    pub fn take(&self, bytes: usize) -> Result<Held, ReadError> {
        let mut held = Held { bytes: Zeroizing::default(), permit: None };
        self.reserve(&mut held, bytes)?;
        Ok(held)
    }

    /// Reads a body of at most `most` bytes, which must arrive within `time`.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn read<B>(&self, body: B, most: usize, time: Duration) -> Result<Held, ReadError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let read = tokio::time::timeout(time, self.collect(body, most)).await;
        read.unwrap_or(Err(ReadError::TooSlow))
    }

    async fn collect<B>(&self, mut body: B, most: usize) -> Result<Held, ReadError>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > most {
            return Err(ReadError::TooLong);
        }
        let mut held = self.take(announced)?;
        // One that does not tell its length comes in parts, as growing would copy it over and over.
        let mut parts = vec![Zeroizing::new(Vec::with_capacity(announced))];
        let (mut length, mut room) = (0, announced);
        while let Some(frame) = body.frame().await {
            let Ok(mut piece) = frame.map_err(|_| ReadError::Incomplete)?.into_data() else {
                continue;
            };
            length += piece.len();
            if length > most {
                return Err(ReadError::TooLong);
            }
            while !piece.is_empty() {
                if parts.last().is_none_or(|part| part.len() == part.capacity()) {
                    room += SMALL;
                    self.reserve(&mut held, room)?;
                    parts.push(Zeroizing::new(Vec::with_capacity(SMALL)));
                }
                if let Some(part) = parts.last_mut() {
                    let fits = piece.len().min(part.capacity() - part.len());
                    part.extend_from_slice(&piece.split_to(fits));
                }
            }
        }
        let mut parts = parts.into_iter();
        held.bytes = parts.next().unwrap_or_default();
        if length > held.len() {
            let first =
                std::mem::replace(&mut held.bytes, Zeroizing::new(Vec::with_capacity(length)));
            std::iter::once(first)
                .chain(parts)
                .for_each(|part| held.bytes.extend_from_slice(&part));
        }
        Ok(held)
    }

    /// Takes permits for so many bytes in all.
    fn reserve(&self, held: &mut Held, bytes: usize) -> Result<(), ReadError> {
        let has = held.permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let needed = if bytes > SMALL { bytes / UNIT + 1 } else { 0 };
        if needed > has {
            let more = u32::try_from(needed - has).unwrap_or(u32::MAX);
            let more = Arc::clone(&self.0).try_acquire_many_owned(more);
            let more = more.map_err(|_| ReadError::Busy)?;
            match &mut held.permit {
                Some(permit) => permit.merge(more),
                none => *none = Some(more),
            }
        }
        Ok(())
    }
}

impl std::ops::Deref for Held {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::ops::DerefMut for Held {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Held> for Bytes {
    fn from(held: Held) -> Self {
        if held.is_empty() { Self::new() } else { Self::from_owner(held) }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;
    use crate::body::pieces;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn memory_is_taken_until_the_last_copy_is_gone_and_small_bodies_need_none() {
        let memory = Memory::new(1 << 20);
        let read = async |length: usize| {
            memory.read(Full::from(vec![7; length]), 1 << 20, MINUTE).await.map(Bytes::from)
        };
        let large = read(900_000).await.unwrap();
        let copy = large.slice(1..2);
        assert_eq!(read(200_000).await, Err(ReadError::Busy));
        assert_eq!(read(SMALL).await.unwrap(), vec![7; SMALL]);
        drop(large);
        assert_eq!(read(200_000).await, Err(ReadError::Busy), "a part is still there");
        drop(copy);
        assert_eq!(read(200_000).await.unwrap().len(), 200_000);
        assert_eq!(read((1 << 20) + 1).await, Err(ReadError::TooLong));
        assert_eq!(memory.0.available_permits(), 1 << 10);
    }

    #[tokio::test]
    async fn a_body_that_does_not_tell_its_length_takes_what_it_needs() {
        let memory = Memory::new(1 << 20);
        let (sender, body) = pieces(1);
        let sent = async {
            for _ in 0..10 {
                assert!(sender.send(Bytes::from(vec![1; 50_000]), MINUTE).await);
            }
            assert!(memory.0.available_permits() < 1 << 10);
            sender.complete();
        };
        let (held, ()) = tokio::join!(memory.read(body, 1 << 20, MINUTE), sent);
        let held = held.unwrap();
        assert_eq!(held.len(), 500_000);
        drop(held);
        assert_eq!(memory.0.available_permits(), 1 << 10);
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_given_up() {
        let (_sender, body) = pieces(1);
        let read = Memory::new(0).read(body, 10, Duration::from_millis(10)).await;
        assert_eq!(read.map(|held| held.len()), Err(ReadError::TooSlow));
    }
}
