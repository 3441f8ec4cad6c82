//! The artifact that an id, or the beginning of one, means.

use crate::error::{Error, Result};
use crate::store::ConversationStore;
use crate::store::record::artifact::{MIMIR_ID, SCHEME};

/// The id of the artifact that is meant: by its id, by the beginning of it, by a whole reference, or by the id that it had
/// in Mimir.
///
/// # Errors
/// [`Error::NoSuchArtifact`] names those that are most like it; what keeps them from being listed.
pub async fn find_artifact(store: &dyn ConversationStore, id: &str) -> Result<String> {
    let none = match store.profile().await?.find_artifact(id) {
        Ok(id) => return Ok(id.to_owned()),
        Err(none @ Error::NoSuchArtifact { .. }) => none,
        Err(error) => return Err(error),
    };
    let id = id.strip_prefix(SCHEME).unwrap_or(id);
    let (artifacts, _) = store.artifacts().await?;
    let mut meant = artifacts
        .iter()
        .filter(|artifact| artifact.metadata.get(MIMIR_ID).is_some_and(|known| known == id));
    match (meant.next(), meant.next()) {
        (Some(only), None) => Ok(only.id.clone()),
        _ => Err(none),
    }
}
