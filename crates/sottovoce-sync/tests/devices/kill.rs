//! A process that dies in the middle of a sync

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use sottovoce_remote::{Remote, RemoteError};
use tokio::sync::Notify;

/// A remote whose operations never end once there have been so many.
#[derive(Debug, Clone)]
pub(crate) struct Mortal<R> {
    remote: R,
    left: Arc<AtomicI64>,
    died: Arc<Notify>,
}

impl<R> Mortal<R> {
    pub(crate) fn new(remote: R) -> Self {
        Self { remote, left: Arc::new(AtomicI64::new(i64::MAX)), died: Arc::new(Notify::new()) }
    }

    /// Ends every operation after so many more.
    pub(crate) fn die_after(&self, operations: i64) {
        self.left.store(operations, Ordering::SeqCst);
    }

    pub(crate) async fn died(&self) {
        self.died.notified().await;
    }

    async fn live(&self) {
        // Another sync of the same moment comes in between.
        tokio::task::yield_now().await;
        if self.left.fetch_sub(1, Ordering::SeqCst) <= 0 {
            self.died.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl<R: Remote> Remote for Mortal<R> {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), RemoteError> {
        self.live().await;
        self.remote.put(name, bytes).await
    }

    async fn get(&self, name: &str) -> Result<Option<Bytes>, RemoteError> {
        self.live().await;
        self.remote.get(name).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, RemoteError> {
        self.live().await;
        self.remote.list(folder).await
    }

    async fn delete(&self, name: &str) -> Result<(), RemoteError> {
        self.live().await;
        self.remote.delete(name).await
    }
}
