//! A remote in memory that counts its requests

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use sottovoce_remote::testing::MemoryRemote;
use sottovoce_remote::{Remote, RemoteError};

/// A remote in memory. Each of its requests can be made to take a while.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    remote: MemoryRemote,
    delay: Mutex<Duration>,
    puts: AtomicUsize,
    gets: AtomicUsize,
    lists: AtomicUsize,
    deletes: AtomicUsize,
}

impl Counted {
    /// The requests since the last call.
    pub(crate) fn take(&self) -> String {
        let counts = [&self.puts, &self.gets, &self.lists, &self.deletes];
        let [puts, gets, lists, deletes] = counts.map(|count| count.swap(0, Ordering::Relaxed));
        format!("{puts} PUT, {gets} GET, {lists} LIST, {deletes} DELETE")
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.remote.objects().values().map(|bytes| bytes.len() as u64).sum()
    }

    pub(crate) fn delay(&self, delay: Duration) {
        *self.delay.lock().unwrap() = delay;
    }

    async fn count(&self, requests: &AtomicUsize) {
        requests.fetch_add(1, Ordering::Relaxed);
        let delay = *self.delay.lock().unwrap();
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }
}

#[async_trait]
impl Remote for Counted {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), RemoteError> {
        self.count(&self.puts).await;
        self.remote.put(name, bytes).await
    }

    async fn get(&self, name: &str) -> Result<Option<Bytes>, RemoteError> {
        self.count(&self.gets).await;
        self.remote.get(name).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, RemoteError> {
        self.count(&self.lists).await;
        self.remote.list(folder).await
    }

    async fn delete(&self, name: &str) -> Result<(), RemoteError> {
        self.count(&self.deletes).await;
        self.remote.delete(name).await
    }
}
