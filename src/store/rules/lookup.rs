//! Finds an artifact by its id or a prefix of it.

use crate::error::{Error, Result};
use crate::store::ConversationStore;
use crate::store::record::artifact::{MIMIR_ID, SCHEME};

/// Finds an artifact by its id, a unique prefix of it, a reference, or its id in Mimir.
///
/// # Errors
/// [`Error::NoSuchArtifact`] names the most similar ids. Also what prevents listing the artifacts.
pub async fn find_artifact(store: &dyn ConversationStore, id: &str) -> Result<String> {
    let none = match store.profile().await?.find_artifact(id) {
        Ok(id) => return Ok(id.to_owned()),
        Err(none @ Error::NoSuchArtifact { .. }) => none,
        Err(error) => return Err(error),
    };
    let id = id.strip_prefix(SCHEME).unwrap_or(id);
    let Some(store) = store.artifact_store() else { return Err(Error::NoArtifacts) };
    if store.fetch_artifact(id).await? {
        return Ok(id.to_owned());
    }
    let (artifacts, _) = store.artifacts().await?;
    let mut meant = artifacts
        .iter()
        .filter(|artifact| artifact.metadata.get(MIMIR_ID).is_some_and(|known| known == id));
    match (meant.next(), meant.next()) {
        (Some(only), None) => Ok(only.id.clone()),
        _ => Err(none),
    }
}
