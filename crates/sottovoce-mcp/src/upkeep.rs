//! What the server does by itself: the daily backup, removing what is over, and noticing what other programs have changed.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use crate::hub::{Change, Hub};

/// How often it is looked whether there is something to do.
const HOUR: Duration = Duration::from_secs(3600);
/// How often it is looked what others have changed, as long as a client wants to hear of it.
const LOOK: Duration = Duration::from_secs(10);

impl Hub {
    /// Looks after the contexts until the server stops.
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
                    let now = self.look().await;
                    if now.is_some() && known.is_some() && now != known {
                        self.tell(Change::Resources);
                    }
                    known = now.or(known);
                }
                () = self.stop.cancelled() => return,
            }
        }
    }

    async fn maintain(&self) {
        match self.registry.maintain().await {
            Ok(done) if !done.removed.is_empty() => self.tell(Change::Resources),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the contexts could not be looked after"),
        }
    }

    /// What tells that there are other resources than before; `None` where the store cannot be read just now.
    async fn look(&self) -> Option<u64> {
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
