//! Repeats what failed for a while: with a limit, growing pauses of random length, and a deadline for each attempt

use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{Action, ErrorKind, RemoteError};
use crate::name;
use crate::remote::{MAX_OBJECT, Remote, Result};

/// How often one operation is tried.
const ATTEMPTS: u32 = 5;

/// The longest first pause. Each further one is at most three times as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The time of an attempt besides that for the object's bytes.
const BASE_TIME: Duration = Duration::from_secs(60);

/// The slowest transfer that still counts as one, in bytes a second.
pub(crate) const SLOWEST: usize = 32 << 10;

/// A remote whose operations are tried up to five times while they fail for want of an answer.
///
/// All operations may be repeated, see [`Remote`]. Between two attempts is a pause of random length, of at most 0.2, 0.6, 1.8 and 5.4
/// seconds. An attempt ends after a minute and the time that its object takes at 32 KiB a second, and is
/// the last one then. What is read may be of any size, so it has
/// the time of the largest object.
#[derive(Debug)]
pub struct Retrying<R> {
    remote: R,
    place: String,
}

impl<R: Remote> Retrying<R> {
    /// Wraps a remote. `place` is its address without credentials, for errors.
    pub fn new(remote: R, place: impl Into<String>) -> Self {
        Self { remote, place: place.into() }
    }

    /// The remote whose operations are repeated.
    pub fn inner(&self) -> &R {
        &self.remote
    }

    async fn retry<T, F: Future<Output = Result<T>>>(
        &self,
        action: Action,
        name: &str,
        bytes: usize,
        attempt: impl Fn() -> F,
    ) -> Result<T> {
        let limit = BASE_TIME + Duration::from_secs((bytes / SLOWEST) as u64);
        let mut longest = FIRST_PAUSE;
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            let result = tokio::time::timeout(limit, attempt()).await.unwrap_or_else(|_| {
                // It has had its time: more of the same would only keep others waiting.
                left = 0;
                let reason = format!("no complete answer within {} seconds", limit.as_secs());
                let place = name::place(&self.place, name);
                Err(RemoteError::new(ErrorKind::Unreachable, action, place, reason))
            });
            match result {
                Err(error) if error.is_transient() && left > 0 => {}
                result => return result,
            }
            tokio::time::sleep(part_of(longest)).await;
            longest *= 3;
        }
    }
}

/// A random part of a duration, so that many clients of a server that was away do not come back at once. Without a source of
/// random numbers, all of it.
pub fn part_of(duration: Duration) -> Duration {
    getrandom::u32()
        .map_or(duration, |random| duration.mul_f64(f64::from(random) / f64::from(u32::MAX)))
}

#[async_trait]
impl<R: Remote> Remote for Retrying<R> {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<()> {
        let attempt = || self.remote.put(name, bytes.clone());
        self.retry(Action::Put, name, bytes.len(), attempt).await
    }

    async fn get(&self, name: &str) -> Result<Option<Bytes>> {
        self.retry(Action::Get, name, MAX_OBJECT, || self.remote.get(name)).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.retry(Action::List, folder, MAX_OBJECT, || self.remote.list(folder)).await
    }

    async fn delete(&self, name: &str) -> Result<()> {
        self.retry(Action::Delete, name, 0, || self.remote.delete(name)).await
    }
}
