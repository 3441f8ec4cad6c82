//! Syncs with other devices while a server runs.

use std::sync::Arc;
#[cfg(feature = "sync")]
use std::time::Duration;

use sottovoce::Config;
use sottovoce::config::OpenConversations;
#[cfg(feature = "sync")]
use sottovoce_sync::Background;

#[cfg(feature = "sync")]
use crate::cmd::share::{credentials, stores};
use crate::exit::Failure;

/// How long a server that ends waits for the remote to take what was said last.
#[cfg(feature = "sync")]
const LAST: Duration = Duration::from_secs(3);

/// Syncs while a server runs, unless that is turned off or not built in.
pub(crate) struct Syncing {
    #[cfg(feature = "sync")]
    background: Option<Background>,
}

#[cfg(feature = "sync")]
impl Syncing {
    /// Syncs these conversations as the settings say. Nothing happens yet.
    pub(crate) fn new(
        config: &Config,
        conversations: &Arc<OpenConversations>,
    ) -> Result<Self, Failure> {
        let seconds = config.sync.interval_seconds;
        if seconds == 0 {
            return Ok(Self { background: None });
        }
        let remote = credentials::Source::default().remote(config)?;
        let syncer = Arc::new(stores::syncer(Arc::clone(conversations), remote));
        Ok(Self { background: Some(Background::new(syncer, Duration::from_secs(seconds))) })
    }

    /// Runs a server to its end, syncs until then, and publishes what was said last.
    pub(crate) async fn during<T>(&self, served: impl Future<Output = T>) -> T {
        let Some(background) = &self.background else { return served.await };
        tokio::pin!(served);
        let ended = tokio::select! {
            ended = &mut served => ended,
            () = background.run(drop) => served.await,
        };
        background.finish(LAST).await;
        ended
    }

    /// How syncing fares, in OpenMetrics' text format.
    #[cfg(feature = "up")]
    pub(crate) fn metrics(&self) -> Arc<dyn Fn() -> String + Send + Sync> {
        match self.background.as_ref().map(Background::handle) {
            Some(handle) => Arc::new(move || open_metrics(&handle)),
            None => Arc::new(String::new),
        }
    }
}

#[cfg(all(feature = "sync", feature = "up"))]
fn open_metrics(handle: &sottovoce_sync::BackgroundHandle) -> String {
    use std::fmt::Write;

    let status = handle.status();
    let mut text = String::new();
    for (name, help, value) in [
        ("sottovoce_syncs", "Syncs with other devices that succeeded.", status.succeeded),
        ("sottovoce_sync_failures", "Syncs with other devices that failed.", status.failed),
        (
            "sottovoce_sync_received_messages",
            "Messages received from other devices.",
            status.received,
        ),
        (
            "sottovoce_sync_published_messages",
            "Messages published for other devices.",
            status.published,
        ),
    ] {
        let _ = writeln!(text, "# TYPE {name} counter\n# HELP {name} {help}\n{name}_total {value}");
    }
    if let Some(at) = status.succeeded_at {
        let name = "sottovoce_last_sync_timestamp_seconds";
        let help = "When a sync last succeeded.";
        let at = at.as_second();
        let _ = writeln!(text, "# TYPE {name} gauge\n# HELP {name} {help}\n{name} {at}");
    }
    text
}

#[cfg(not(feature = "sync"))]
impl Syncing {
    pub(crate) fn new(_: &Config, _: &Arc<OpenConversations>) -> Result<Self, Failure> {
        Ok(Self {})
    }

    pub(crate) async fn during<T>(&self, served: impl Future<Output = T>) -> T {
        served.await
    }

    #[cfg(feature = "up")]
    pub(crate) fn metrics(&self) -> Arc<dyn Fn() -> String + Send + Sync> {
        Arc::new(String::new)
    }
}
