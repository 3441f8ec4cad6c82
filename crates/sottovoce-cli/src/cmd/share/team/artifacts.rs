//! Artifacts that members have added come from the server when somebody opens them.

use std::io;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use sottovoce::config::OpenConversations;
use sottovoce::store::ArtifactSource;
use sottovoce::{Error, Result, Scope};
use sottovoce_sync::SyncError;
use sottovoce_team::{FetchedArtifact, TeamError};

use crate::cmd::share::team::of;

/// Fetches the artifacts of members, as long as these conversations are there.
pub(crate) fn source(conversations: &Arc<OpenConversations>) -> Arc<dyn ArtifactSource> {
    Arc::new(TeamArtifacts(Arc::downgrade(conversations)))
}

/// The conversations hold this, so it does not hold them.
struct TeamArtifacts(Weak<OpenConversations>);

#[async_trait]
impl ArtifactSource for TeamArtifacts {
    async fn fetch(&self, scope: &Scope, id: &str) -> Result<bool> {
        let Some(conversations) = self.0.upgrade() else { return Ok(false) };
        match of(&conversations).fetch_artifact(scope, id).await {
            Ok(fetched) => Ok(fetched == FetchedArtifact::Fetched),
            Err(TeamError::Sync(SyncError::Store(error))) => Err(error),
            Err(error) => {
                let place = format!("artifacts/{id}");
                Err(Error::io("fetch it", place, io::Error::other(error.to_string())))
            }
        }
    }
}

sottovoce::debug_shows!(TeamArtifacts);
