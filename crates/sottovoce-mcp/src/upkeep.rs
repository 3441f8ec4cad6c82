//! Background work of the server: the daily backup, removal of expired contexts, and detection of changes by other
//! programs.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use crate::hub::{Change, Hub};

/// The interval between maintenance runs.
const HOUR: Duration = Duration::from_secs(3600);
/// The interval between checks for changes by other programs, while a client is subscribed.
const LOOK: Duration = Duration::from_secs(10);

impl Hub {
    /// Runs the maintenance of contexts until the server stops.
    pub async fn keep_up(self: Arc<Self>) {
        if !self.access.contexts {
            return;
        }
        let (mut hours, mut looks) = (tokio::time::interval(HOUR), tokio::time::interval(LOOK));
        let mut known = None;
        loop {
            tokio::select! {
                _ = hours.tick() => self.maintain().await,
                _ = looks.tick(), if self.changes.receiver_count() > 0 => {
                    let now = self.fingerprint().await;
                    if now.is_some() && known.is_some() && now != known {
                        self.publish(Change::Resources);
                    }
                    known = now.or(known);
                }
                () = self.stop.cancelled() => return,
            }
        }
    }

    async fn maintain(&self) {
        match self.registry.maintain().await {
            Ok(done) if !done.removed.is_empty() => self.publish(Change::Resources),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the maintenance of contexts failed"),
        }
    }

    /// A fingerprint of the list of resources; `None` if the store cannot be read at the moment.
    async fn fingerprint(&self) -> Option<u64> {
        let contexts = self.registry.list().await.ok()?.contexts;
        let presets = self.registry.presets().await.ok()?;
        let mut hasher = DefaultHasher::new();
        for context in contexts.iter().filter(|context| context.is_open()) {
            (&context.id, &context.name).hash(&mut hasher);
        }
        for preset in presets.iter().filter(|preset| preset.is_active) {
            (&preset.id, &preset.name).hash(&mut hasher);
        }
        Some(hasher.finish())
    }
}
