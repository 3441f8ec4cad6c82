//! What devices and members of teams share of a conversation beside its messages: settings, snapshots and artifacts, as values
//! by name.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sottovoce::exchange::Exchange;

use crate::error::{SyncError, SyncResult};

/// What precedes a snapshot's id in a name.
pub const SNAPSHOT: &str = "snapshot/";

/// What precedes an artifact's id in a name.
pub const ARTIFACT: &str = "artifact/";

/// The values of a conversation, without those that were never set: settings by the names of
/// [`Exchange::settings`], snapshots, and artifacts without their contents. A deleted artifact has `null`.
///
/// # Errors
/// Those of reading the conversation, and [`SyncError::State`] for a value that is no JSON.
pub async fn values(exchange: &Exchange) -> SyncResult<BTreeMap<String, Value>> {
    let mut values = exchange.settings().await?;
    for (id, snapshot) in exchange.snapshots().await? {
        values.insert(format!("{SNAPSHOT}{id}"), to_value(&snapshot)?);
    }
    for (id, artifact) in exchange.artifacts().await? {
        let value = artifact.as_ref().map(to_value).transpose()?;
        values.insert(format!("{ARTIFACT}{id}"), value.unwrap_or(Value::Null));
    }
    Ok(values)
}

/// Whether a name that was deleted never has a value again: snapshots and artifacts have random ids.
pub fn is_deleted_for_ever(name: &str) -> bool {
    name.starts_with(SNAPSHOT) || name.starts_with(ARTIFACT)
}

/// The digest of a value, by which changes are noticed: 16 hexadecimal digits.
pub fn digest(value: &Value) -> String {
    // Maps are sorted by key, so a value has one text.
    let digest: [u8; 32] = Sha256::digest(value.to_string().as_bytes()).into();
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// A value as JSON.
///
/// # Errors
/// [`SyncError::State`] for one that is none.
pub fn to_value(value: &impl Serialize) -> SyncResult<Value> {
    serde_json::to_value(value)
        .map_err(|_| SyncError::State { reason: "a value cannot be written as JSON" })
}
