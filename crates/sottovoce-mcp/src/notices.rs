//! Telling clients of changes: those of the newest revision listen for them, the others are told in their session.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, ServiceError, SubscriptionContext};
use tokio::sync::broadcast::error::RecvError;

use crate::hub::{Change, Hub};

/// How long a client may take to hear of a change.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether a client is still there.
const LOOK: Duration = Duration::from_secs(30);
/// The most resources that a session may want to hear of: as many as there usually may be contexts.
const MOST: usize = 1000;
/// The most bytes of a resource's URI; those of ours are far shorter.
const LONGEST_URI: usize = 512;

/// The resources that a session wants to hear of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted(Arc<Mutex<BTreeSet<String>>>);

impl Wanted {
    /// Or else why that cannot be.
    pub(crate) fn add(&self, uri: String) -> Result<(), String> {
        if uri.len() > LONGEST_URI {
            return Err(format!("a resource's URI has at most {LONGEST_URI} bytes"));
        }
        let mut wanted = self.uris();
        if wanted.len() >= MOST && !wanted.contains(&uri) {
            return Err(format!("a session may subscribe to {MOST} resources"));
        }
        wanted.insert(uri);
        Ok(())
    }

    pub(crate) fn remove(&self, uri: &str) {
        self.uris().remove(uri);
    }

    fn has(&self, uri: &str) -> bool {
        self.uris().contains(uri)
    }

    fn uris(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As much of what a client wants to hear of as it may.
pub(crate) fn within_limits(mut wanted: SubscriptionFilter) -> SubscriptionFilter {
    if let Some(uris) = &mut wanted.resource_subscriptions {
        uris.retain(|uri| uri.len() <= LONGEST_URI);
        uris.truncate(MOST);
    }
    wanted
}

/// Tells a client that listens, until it stops or the server does.
pub(crate) async fn listen(hub: &Hub, subscription: SubscriptionContext) {
    let mut changes = hub.changes.subscribe();
    loop {
        let change = tokio::select! {
            change = changes.recv() => change,
            () = subscription.cancelled() => return,
            () = hub.stop.cancelled() => return,
        };
        let sink = subscription.sink();
        // That a client wants to hear of other changes only is no failure.
        match change {
            Ok(Change::Resources) | Err(RecvError::Lagged(_)) => {
                drop(sink.notify_resource_list_changed().await);
            }
            Ok(Change::Updated(uri)) => drop(sink.notify_resource_updated(uri).await),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Tells a session in the background, until it is over.
pub(crate) fn forward(hub: &Arc<Hub>, peer: Peer<RoleServer>, wanted: Wanted) {
    let (mut changes, stop) = (hub.changes.subscribe(), hub.stop.clone());
    tokio::spawn(async move {
        let mut look = tokio::time::interval(LOOK);
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = stop.cancelled() => return,
                _ = look.tick() => {
                    if peer.is_transport_closed() {
                        return;
                    }
                    continue;
                }
            };
            if matches!(change, Err(RecvError::Closed)) {
                return;
            }
            let told = tokio::time::timeout(PATIENCE, tell(&peer, change, &wanted)).await;
            if matches!(told, Ok(Err(_))) {
                return;
            }
        }
    });
}

async fn tell(
    peer: &Peer<RoleServer>,
    change: Result<Change, RecvError>,
    wanted: &Wanted,
) -> Result<(), ServiceError> {
    match change {
        Ok(Change::Updated(uri)) if wanted.has(&uri) => {
            peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await
        }
        Ok(Change::Updated(_)) => Ok(()),
        Ok(Change::Resources) | Err(_) => peer.notify_resource_list_changed().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_subscribes_to_so_many_resources_and_to_none_with_an_endless_uri() {
        let wanted = Wanted::default();
        for number in 0..MOST {
            wanted.add(format!("context/{number}")).unwrap();
        }
        wanted.add("context/0".to_owned()).unwrap();
        assert!(wanted.add("context/one more".to_owned()).unwrap_err().contains("1000"));
        wanted.remove("context/0");
        assert!(wanted.add("x".repeat(LONGEST_URI + 1)).unwrap_err().contains("512 bytes"));
        wanted.add("x".repeat(LONGEST_URI)).unwrap();
        let many = (0..2 * MOST).map(|number| number.to_string()).chain(["x".repeat(1 << 20)]);
        let mut filter = SubscriptionFilter::new();
        filter.resource_subscriptions = Some(many.rev().collect());
        let uris = within_limits(filter).resource_subscriptions.unwrap();
        assert!(uris.len() == MOST && uris.iter().all(|uri| uri.len() < 5));
    }
}
