//! Syncs with other devices and with teams while a server runs.

use std::sync::Arc;
use std::time::Duration;

use sottovoce::config::OpenConversations;
use sottovoce_serve::MoreMetrics;
use sottovoce_sync::{Background, Repeated};

use crate::cmd::share::report::LAST;
use crate::cmd::share::{credentials, stores, team};
use crate::exit::Failure;

/// Syncs while a server runs, unless that is turned off.
pub(crate) struct Syncing {
    devices: Option<Background>,
    teams: Option<Background<sottovoce_team::Teams>>,
}

impl Syncing {
    /// Syncs these conversations as the settings say. Nothing happens yet.
    pub(crate) fn new(conversations: &Arc<OpenConversations>) -> Result<Self, Failure> {
        let config = conversations.config();
        let interval = Duration::from_secs(config.sync.interval_seconds);
        if interval.is_zero() {
            return Ok(Self { devices: None, teams: None });
        }
        let remote = credentials::Source::default().remote(config)?;
        let syncer = Arc::new(stores::syncer(Arc::clone(conversations), remote));
        Ok(Self {
            devices: Some(Background::new(syncer, interval)),
            teams: Some(Background::new(Arc::new(team::of(conversations)), interval)),
        })
    }

    /// Runs a server to its end, syncs until then, and publishes what was said last.
    pub(crate) async fn during<T>(&self, served: impl Future<Output = T>) -> T {
        during(self.teams.as_ref(), during(self.devices.as_ref(), served)).await
    }

    /// How syncing fares.
    pub(crate) fn metrics(&self) -> MoreMetrics {
        let devices = self.devices.as_ref().map(|devices| ("sottovoce", devices.handle()));
        let teams = self.teams.as_ref().map(|teams| ("sottovoce_team", teams.handle()));
        let all: Vec<_> = devices.into_iter().chain(teams).collect();
        Arc::new(move |metrics: &mut sottovoce_serve::OpenMetrics| {
            all.iter().for_each(|(prefix, handle)| tell(metrics, prefix, handle));
        })
    }
}

/// Runs something to its end, syncs until then, and publishes what was said last.
async fn during<W: Repeated, T>(
    background: Option<&Background<W>>,
    served: impl Future<Output = T>,
) -> T {
    let Some(background) = background else { return served.await };
    // In boxes, since a process may do this for devices and for teams at once.
    let mut served = Box::pin(served);
    let ended = tokio::select! {
        ended = &mut served => ended,
        () = Box::pin(background.run(drop)) => served.await,
    };
    Box::pin(background.finish(LAST)).await;
    ended
}

fn tell(
    metrics: &mut sottovoce_serve::OpenMetrics,
    prefix: &str,
    handle: &sottovoce_sync::BackgroundHandle,
) {
    let status = handle.status();
    for (name, help, value) in [
        ("syncs", "Syncs with others that succeeded.", status.succeeded),
        ("sync_failures", "Syncs with others that failed.", status.failed),
        ("sync_received_messages", "Messages received from others.", status.received),
        ("sync_published_messages", "Messages published for others.", status.published),
    ] {
        metrics.counter(&format!("{prefix}_{name}"), help, value);
    }
    if let Some(at) = status.succeeded_at {
        let name = format!("{prefix}_last_sync_timestamp_seconds");
        metrics.gauge(&name, "When a sync last succeeded.", at.as_second());
    }
}
