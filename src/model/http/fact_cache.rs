//! A cache of what is known about a model, valid until its server may have changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tokio::sync::Mutex;

use super::HttpReply;
use crate::error::{Error, ModelFailure, Result};
use crate::model::{Reply, ReplyPart};

/// Facts about a model, fetched once, and again after a lost connection.
#[derive(Debug)]
pub(crate) struct FactCache<F> {
    /// The lock is held while fetching, so that concurrent calls fetch once.
    facts: Mutex<Option<F>>,
    /// Whether the server may have changed since.
    stale: Arc<AtomicBool>,
}

impl<F> Default for FactCache<F> {
    fn default() -> Self {
        Self { facts: Mutex::default(), stale: Arc::default() }
    }
}

impl<F: Copy> FactCache<F> {
    /// Returns the facts. Fetches them if they are not known.
    pub(crate) async fn get(&self, learn: impl Future<Output = Result<F>>) -> Result<F> {
        let mut known = self.facts.lock().await;
        if self.stale.swap(false, Ordering::Relaxed) {
            *known = None;
        }
        if let Some(facts) = *known {
            return Ok(facts);
        }
        let facts = learn.await?;
        *known = Some(facts);
        Ok(facts)
    }

    /// Marks the facts as stale after an error that may mean another server.
    pub(crate) fn watch<T>(&self, result: Result<T>) -> Result<T> {
        watch(&self.stale, result)
    }

    /// Wraps an answer so that an error in it marks the facts as stale.
    pub(crate) fn watched(&self, reply: HttpReply) -> Box<dyn Reply> {
        Box::new(Watched { reply, stale: Arc::clone(&self.stale) })
    }

    /// Reads an answer to its end and ignores its content.
    pub(crate) async fn finish(&self, mut reply: HttpReply) -> Result<()> {
        while !matches!(self.watch(reply.next().await)?, ReplyPart::Done(_)) {}
        Ok(())
    }
}

fn watch<T>(stale: &AtomicBool, result: Result<T>) -> Result<T> {
    if let Err(Error::Model { failure, .. }) = &result
        && matches!(
            failure,
            ModelFailure::Unreachable(_)
                | ModelFailure::Interrupted { .. }
                | ModelFailure::BrokeOff { .. }
                | ModelFailure::TimedOut { .. }
                | ModelFailure::NoSuchModel { .. }
                | ModelFailure::Cloud { .. }
        )
    {
        stale.store(true, Ordering::Relaxed);
    }
    result
}

struct Watched {
    reply: HttpReply,
    stale: Arc<AtomicBool>,
}

#[async_trait]
impl Reply for Watched {
    async fn next(&mut self) -> Result<ReplyPart> {
        let part = self.reply.next().await;
        watch(&self.stale, part)
    }

    fn request(&self) -> Option<&str> {
        self.reply.request()
    }
}
