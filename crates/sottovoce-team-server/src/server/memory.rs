//! The memory for the bodies of requests

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body as _, Incoming};
use sottovoce_net::{ReadError, read};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

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
        // One that does not tell its length may need all.
        let announced = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
        let permits = announced.unwrap_or(most).min(most) / UNIT + 1;
        let permit = Arc::clone(&self.0)
            .try_acquire_many_owned(u32::try_from(permits).unwrap_or(u32::MAX))
            .map_err(|_| Error::Busy)?;
        match read(body, most, time).await {
            Ok(bytes) => Ok((bytes, permit)),
            Err(ReadError::TooLong) => {
                Err(Error::TooLarge { what: "the body of this request", most })
            }
            Err(ReadError::Incomplete) => {
                Err(Error::Invalid { what: "the body of the request broke off".to_owned() })
            }
            Err(ReadError::TooSlow) => Err(Error::TooSlow),
        }
    }
}
