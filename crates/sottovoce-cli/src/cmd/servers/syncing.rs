//! Syncs with other devices and with teams while a server runs.

use std::sync::Arc;
#[cfg(feature = "sync")]
use std::time::Duration;

use sottovoce::Config;
use sottovoce::config::OpenConversations;
#[cfg(feature = "up")]
use sottovoce_serve::MoreMetrics;
#[cfg(feature = "sync")]
use sottovoce_sync::{Background, Repeated};

#[cfg(feature = "team")]
use crate::cmd::share::team;
#[cfg(feature = "sync")]
use crate::cmd::share::{credentials, stores};
use crate::exit::Failure;

/// How long a server that ends waits for the remote to take what was said last.
#[cfg(feature = "sync")]
const LAST: Duration = Duration::from_secs(3);

/// Syncs while a server runs, unless that is turned off or not built in.
pub(crate) struct Syncing {
    #[cfg(feature = "sync")]
    devices: Option<Background>,
    #[cfg(feature = "team")]
    teams: Option<Background<sottovoce_team::Teams>>,
}

#[cfg(feature = "sync")]
impl Syncing {
    /// Syncs these conversations as the settings say. Nothing happens yet.
    pub(crate) fn new(
        config: &Config,
        conversations: &Arc<OpenConversations>,
    ) -> Result<Self, Failure> {
        let interval = Duration::from_secs(config.sync.interval_seconds);
        if interval.is_zero() {
            return Ok(Self {
                devices: None,
                #[cfg(feature = "team")]
                teams: None,
            });
        }
        let remote = credentials::Source::default().remote(config)?;
        let syncer = Arc::new(stores::syncer(Arc::clone(conversations), remote));
        Ok(Self {
            devices: Some(Background::new(syncer, interval)),
            #[cfg(feature = "team")]
            teams: Some(Background::new(Arc::new(team::of(conversations)), interval)),
        })
    }

    /// Runs a server to its end, syncs until then, and publishes what was said last.
    pub(crate) async fn during<T>(&self, served: impl Future<Output = T>) -> T {
        let with_devices = during(self.devices.as_ref(), served);
        #[cfg(feature = "team")]
        let with_devices = during(self.teams.as_ref(), with_devices);
        with_devices.await
    }

    /// How syncing fares.
    #[cfg(feature = "up")]
    pub(crate) fn metrics(&self) -> MoreMetrics {
        let devices = self.devices.as_ref().map(|devices| ("sottovoce", devices.handle()));
        let mut all: Vec<_> = devices.into_iter().collect();
        #[cfg(feature = "team")]
        all.extend(self.teams.as_ref().map(|teams| ("sottovoce_team", teams.handle())));
        Arc::new(move |metrics: &mut sottovoce_serve::OpenMetrics| {
            all.iter().for_each(|(prefix, handle)| tell(metrics, prefix, handle));
        })
    }
}

/// Runs something to its end, syncs until then, and publishes what was said last.
#[cfg(feature = "sync")]
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

#[cfg(all(feature = "sync", feature = "up"))]
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

#[cfg(not(feature = "sync"))]
impl Syncing {
    pub(crate) fn new(_: &Config, _: &Arc<OpenConversations>) -> Result<Self, Failure> {
        Ok(Self {})
    }

    pub(crate) async fn during<T>(&self, served: impl Future<Output = T>) -> T {
        served.await
    }

    #[cfg(feature = "up")]
    pub(crate) fn metrics(&self) -> MoreMetrics {
        Arc::new(|_: &mut sottovoce_serve::OpenMetrics| {})
    }
}

/// Warns of a store whose conversations are shared: this program exchanges nothing.
#[cfg(not(feature = "sync"))]
pub(crate) async fn warn_if_shared(conversations: &OpenConversations) -> Result<(), Failure> {
    use sottovoce::Scope;
    use sottovoce::exchange::{Sharing, read_state};

    let root = conversations.store(&Scope::Default).await?;
    for (sharing, whom, feature) in
        [(Sharing::Devices, "other devices", "sync"), (Sharing::Teams, "a team", "team-server")]
    {
        let state = read_state(&root, sharing).await?;
        let state = state.and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
        let is_shared = |state: serde_json::Value| {
            let teams = state.get("teams").map(|teams| teams.as_object().map(|teams| teams.len()));
            teams != Some(Some(0))
        };
        if state.is_some_and(is_shared) {
            crate::output::warning(&format!(
                "this store shares conversations with {whom}; this program was built without `{feature}` and exchanges nothing"
            ));
        }
    }
    Ok(())
}
