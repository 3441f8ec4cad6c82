//! What a store remembers of sharing, as JSON that is sealed in it

use serde::Serialize;
use serde::de::DeserializeOwned;
use sottovoce::FileConversationStore;
use sottovoce::exchange::{self, Sharing};
use zeroize::Zeroizing;

use crate::error::{SyncError, SyncResult};

/// Reads the state from the default conversation. `None` if nothing is shared.
///
/// # Errors
/// Those of the store, and [`SyncError::State`] for a state of another form or of another version than this.
pub async fn read_state<T: DeserializeOwned>(
    root: &FileConversationStore,
    sharing: Sharing,
    (version, of): (u64, fn(&T) -> u64),
) -> SyncResult<Option<T>> {
    // After sharing has ended, the document is empty.
    let text = exchange::read_state(root, sharing).await?;
    let Some(text) = text.filter(|text| !text.trim_ascii().is_empty()) else { return Ok(None) };
    let state: T = serde_json::from_slice(&text)
        .map_err(|_| SyncError::State { reason: "it has another form" })?;
    match of(&state) == version {
        true => Ok(Some(state)),
        false => Err(SyncError::State { reason: "another version of this program wrote it" }),
    }
}

/// Writes the state.
///
/// # Errors
/// Those of the store.
pub async fn write_state(
    root: &FileConversationStore,
    sharing: Sharing,
    state: &impl Serialize,
) -> SyncResult<()> {
    let text = serde_json::to_vec(state).map(Zeroizing::new);
    let text = text.map_err(|_| SyncError::State { reason: "it cannot be written" })?;
    Ok(exchange::write_state(root, sharing, &text).await?)
}
