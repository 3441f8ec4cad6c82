//! What the server does for its contexts by itself: the daily backup, and removing what is over.

use std::sync::Arc;
use std::time::Duration;

use crate::hub::{Change, Hub};

/// How often it is looked whether there is something to do.
const HOUR: Duration = Duration::from_secs(3600);

impl Hub {
    /// Looks after the contexts, now and every hour, until the server stops.
    pub async fn keep_up(self: Arc<Self>) {
        if !self.access.contexts {
            return;
        }
        let mut hours = tokio::time::interval(HOUR);
        loop {
            tokio::select! {
                _ = hours.tick() => {}
                () = self.stop.cancelled() => return,
            }
            match self.registry.maintain().await {
                Ok(done) if !done.removed.is_empty() => self.tell(Change::Resources),
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "the contexts could not be looked after"),
            }
        }
    }
}
