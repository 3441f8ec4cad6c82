//! Telling clients of changes: those of the newest revision listen for them, the others are told in their session.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, ServiceError, SubscriptionContext};
use tokio::sync::broadcast::error::RecvError;

use crate::hub::{Change, Hub};

/// How long a client may take to hear of a change.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether a client is still there.
const LOOK: Duration = Duration::from_secs(30);
/// The most resources that a session may want to hear of.
const MOST: usize = 1000;

/// The resources that a session wants to hear of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted(Arc<Mutex<BTreeSet<String>>>);

impl Wanted {
    /// `false` where there are too many.
    pub(crate) fn add(&self, uri: String) -> bool {
        let mut wanted = self.uris();
        let has_room = wanted.len() < MOST || wanted.contains(&uri);
        if has_room {
            wanted.insert(uri);
        }
        has_room
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
