//! The memory for bodies: of requests until they are handled, and of answers until they are sent

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body::Body;
use http_body_util::BodyExt;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use zeroize::{Zeroize, Zeroizing};

/// One permit is this many bytes.
const UNIT: usize = 1 << 10;
/// A body of so many bytes needs none: the number of connections limits those.
const SMALL: usize = 64 << 10;
/// Larger allocations than this are mapped by themselves, and given back to the system when they are freed, whatever was freed
/// before: glibc's DEFAULT_MMAP_THRESHOLD_MAX. Of smaller ones it may keep one for each thread.
const MAPPED: usize = 32 << 20;

/// The memory for the bodies that are not small, of all requests and answers of a server.
#[derive(Debug, Clone)]
pub struct Memory(Arc<Semaphore>);

/// The memory of a body, and the body if it was read. It is wiped and given back once nobody has the bytes any more.
/// `Debug` does not show them.
#[derive(Default)]
pub struct Held {
    bytes: Vec<u8>,
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
        let mut held = Held::default();
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
        if body.size_hint().lower() > most as u64 {
            return Err(ReadError::TooLong);
        }
        let room = body.size_hint().upper().and_then(|upper| usize::try_from(upper).ok());
        let mut held = Held::with_room(room.map_or(most, |room| room.min(most)))?;
        while let Some(frame) = body.frame().await {
            let Ok(piece) = frame.map_err(|_| ReadError::Incomplete)?.into_data() else {
                continue;
            };
            if held.len() + piece.len() > most {
                return Err(ReadError::TooLong);
            }
            self.add(&mut held, &piece)?;
        }
        Ok(held)
    }

    /// Reads exactly so many bytes, which must arrive within `time`.
    pub(crate) async fn read_exact<R>(
        &self,
        from: &mut R,
        length: usize,
        time: Duration,
    ) -> Result<Held, ReadError>
    where
        R: AsyncRead + Unpin,
    {
        let read = async {
            let mut held = Held::with_room(length)?;
            let mut piece = Zeroizing::new(vec![0; length.min(SMALL)]);
            while held.len() < length {
                let most = piece.len().min(length - held.len());
                let read = from.read(piece.get_mut(..most).unwrap_or_default()).await;
                let read = read.ok().filter(|read| *read > 0).ok_or(ReadError::Incomplete)?;
                self.add(&mut held, piece.get(..read).unwrap_or_default())?;
            }
            Ok(held)
        };
        tokio::time::timeout(time, read).await.unwrap_or(Err(ReadError::TooSlow))
    }

    /// Adds what came to a body, whose memory is counted by that and not by what was announced: who sends nothing takes none.
    fn add(&self, held: &mut Held, piece: &[u8]) -> Result<(), ReadError> {
        self.reserve(held, held.len() + piece.len())?;
        held.bytes.extend_from_slice(piece);
        Ok(())
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

impl Held {
    /// With room for so many bytes, which takes memory once it is written: one that grew would be copied over and over, and its
    /// copies stay in memory.
    fn with_room(bytes: usize) -> Result<Self, ReadError> {
        let mut held = Self::default();
        let room = if bytes > SMALL { bytes.max(MAPPED + 1) } else { bytes };
        held.bytes.try_reserve_exact(room).map_err(|_| ReadError::Busy)?;
        Ok(held)
    }

    /// Wipes the bytes, and keeps the memory for what was made of them.
    pub fn clear(&mut self) {
        // What was announced and did not come was never written: wiping it would take the memory that it did not.
        self.bytes.as_mut_slice().zeroize();
        self.bytes = Vec::new();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.clear();
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("bytes", &self.bytes.len()).finish_non_exhaustive()
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
    use tokio::io::AsyncWriteExt;

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

    /// A body that announces a length and never comes.
    struct Announced(u64);

    impl Body for Announced {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
            std::task::Poll::Pending
        }

        fn size_hint(&self) -> http_body::SizeHint {
            http_body::SizeHint::with_exact(self.0)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_announces_too_much_is_refused_before_it_comes() {
        let memory = Memory::new(1 << 20);
        let read = async |length| memory.read(Announced(length), 1000, MINUTE).await.map(drop);
        assert_eq!(read(1002).await, Err(ReadError::TooLong));
        assert_eq!(read(1000).await, Err(ReadError::TooSlow));
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
    async fn bytes_that_are_announced_take_memory_once_they_come() {
        let memory = Memory::new(1 << 20);
        let (mut client, mut server) = tokio::io::duplex(SMALL);
        let read = memory.read_exact(&mut server, 1 << 20, MINUTE);
        let mut read = std::pin::pin!(read);
        let nothing = tokio::time::timeout(Duration::from_millis(10), &mut read).await;
        assert!(nothing.is_err());
        assert_eq!(memory.0.available_permits(), 1 << 10);
        let sent = async {
            client.write_all(&[1; 300_000]).await.unwrap();
            client
        };
        let client = tokio::select! {
            client = sent => client,
            _ = &mut read => panic!("it is not whole"),
        };
        let available = memory.0.available_permits();
        assert!((1 << 9..1 << 10).contains(&available), "{available}");
        drop(client);
        assert_eq!(read.await.map(|held| held.len()), Err(ReadError::Incomplete));
        assert_eq!(memory.0.available_permits(), 1 << 10);
    }

    #[tokio::test]
    async fn a_body_that_does_not_come_is_given_up() {
        let (_sender, body) = pieces(1);
        let read = Memory::new(0).read(body, 10, Duration::from_millis(10)).await;
        assert_eq!(read.map(|held| held.len()), Err(ReadError::TooSlow));
    }
}
