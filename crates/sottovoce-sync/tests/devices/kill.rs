//! A process that dies in the middle of a sync

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;

use async_trait::async_trait;
use bytes::Bytes;
use sottovoce_remote::{Remote, RemoteError};
use tokio::sync::Notify;

/// Works for so many steps and then goes no further, like a process that dies: between two requests, or two operations of
/// a store. `None` if it was not done by then. What a store was at is done: within that, its own tests interrupt it.
pub(crate) async fn for_steps<T>(mut steps: u64, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| match steps {
        0 => Poll::Ready(None),
        _ => {
            steps -= 1;
            work.as_mut().poll(context).map(Some)
        }
    })
    .await
}

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
