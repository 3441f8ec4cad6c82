//! Change notices: clients of the newest revision listen for them, the others get them in their session.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, ServiceError, SubscriptionContext};
use sottovoce_net::lock;
use tokio::sync::broadcast::error::RecvError;

use crate::hub::{Change, Hub};

/// How long sending one notice to a client may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The interval between checks whether a client is still connected.
const LOOK: Duration = Duration::from_secs(30);
/// The most resources that a session may subscribe to: the default limit of contexts.
const MOST: usize = 1000;
/// The longest resource URI that a client may subscribe to, in bytes. The server's own are far shorter.
const LONGEST_URI: usize = 512;

/// The resources that a session is subscribed to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted(Arc<Mutex<BTreeSet<String>>>);

impl Wanted {
    /// Adds a resource, or returns the reason why it cannot be added.
    pub(crate) fn add(&self, uri: String) -> Result<(), String> {
        if uri.len() > LONGEST_URI {
            return Err(format!("a resource's URI may have at most {LONGEST_URI} bytes"));
        }
        let mut wanted = lock(&self.0);
        if wanted.len() >= MOST && !wanted.contains(&uri) {
            return Err(format!("a session may subscribe to at most {MOST} resources"));
        }
        wanted.insert(uri);
        Ok(())
    }

    pub(crate) fn remove(&self, uri: &str) {
        lock(&self.0).remove(uri);
    }

    fn has(&self, uri: &str) -> bool {
        lock(&self.0).contains(uri)
    }
}

/// Cuts a subscription filter to the limits of a session.
pub(crate) fn within_limits(mut wanted: SubscriptionFilter) -> SubscriptionFilter {
    if let Some(uris) = &mut wanted.resource_subscriptions {
        uris.retain(|uri| uri.len() <= LONGEST_URI);
        uris.truncate(MOST);
    }
    wanted
}

/// Sends changes to a listening client until the client or the server stops.
pub(crate) async fn listen(hub: &Hub, subscription: SubscriptionContext) {
    let mut changes = hub.changes.subscribe();
    loop {
        let change = tokio::select! {
            change = changes.recv() => change,
            () = subscription.cancelled() => return,
            () = hub.stop.cancelled() => return,
        };
        let sink = subscription.sink();
        // The client may have subscribed to other changes only; that is not an error.
        match change {
            Ok(Change::Resources) | Err(RecvError::Lagged(_)) => {
                drop(sink.notify_resource_list_changed().await);
            }
            Ok(Change::Updated(uri)) => drop(sink.notify_resource_updated(uri).await),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Forwards changes to a session in the background until the session ends.
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
            let sent = tokio::time::timeout(PATIENCE, notify(&peer, change, &wanted)).await;
            if matches!(sent, Ok(Err(_))) {
                return;
            }
        }
    });
}

async fn notify(
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
