//! What servers do about sharing in a program that was built without it: nothing, and they warn.

use std::sync::Arc;

use sottovoce::Scope;
use sottovoce::config::OpenConversations;
use sottovoce::exchange::{Sharing, read_state};
use sottovoce_serve::MoreMetrics;

use crate::exit::Failure;
use crate::output;

/// Exchanges nothing.
pub(crate) struct Syncing;

impl Syncing {
    pub(crate) fn new(_: &Arc<OpenConversations>) -> Result<Self, Failure> {
        Ok(Self)
    }

    pub(crate) async fn during<T>(&self, served: impl Future<Output = T>) -> T {
        served.await
    }

    pub(crate) fn metrics(&self) -> MoreMetrics {
        Arc::new(|_: &mut sottovoce_serve::OpenMetrics| {})
    }
}

/// Warns of a store whose conversations are shared: this program exchanges nothing.
pub(crate) async fn warn_if_shared(conversations: &OpenConversations) -> Result<(), Failure> {
    let root = conversations.store(&Scope::Default).await?;
    for (sharing, whom) in [(Sharing::Devices, "other devices"), (Sharing::Teams, "a team")] {
        let state = read_state(&root, sharing).await?;
        let state = state.and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
        let is_shared = |state: serde_json::Value| {
            let teams = state.get("teams").map(|teams| teams.as_object().map(|teams| teams.len()));
            teams != Some(Some(0))
        };
        if state.is_some_and(is_shared) {
            output::warning(&format!(
                "this store shares conversations with {whom}; this program was built without `share` and exchanges nothing"
            ));
        }
    }
    Ok(())
}
