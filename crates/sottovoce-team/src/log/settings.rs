//! Settings, snapshots and artifacts of a shared conversation. Of two values the one that the server's log has later stays

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sottovoce::exchange::Exchange;
use sottovoce_sync::{SyncError, SyncResult};

/// The settings that members share. How much is kept, what was cleared and how far prompts reach back is everybody's own.
const SHARED: [&str; 4] = ["title", "tags", "metadata", "persona"];

/// What precedes a snapshot's id in a name.
pub(crate) const SNAPSHOT: &str = "snapshot/";
/// What precedes an artifact's id.
pub(crate) const ARTIFACT: &str = "artifact/";

/// The values by name, without those that are not set. A deleted artifact has `null`.
pub(crate) async fn values(exchange: &Exchange) -> SyncResult<BTreeMap<String, Value>> {
    let mut values = exchange.settings().await?;
    values.retain(|name, _| SHARED.contains(&name.as_str()));
    for (id, snapshot) in exchange.snapshots().await? {
        values.insert(format!("{SNAPSHOT}{id}"), to_value(&snapshot)?);
    }
    for (id, artifact) in exchange.artifacts().await? {
        let value = artifact.as_ref().map(to_value).transpose()?;
        values.insert(format!("{ARTIFACT}{id}"), value.unwrap_or(Value::Null));
    }
    Ok(values)
}

/// Whether members share a setting of that name.
pub(crate) fn is_shared(name: &str) -> bool {
    SHARED.contains(&name) || is_one_of_many(name)
}

/// Whether it is a snapshot or an artifact, whose id never stands for anything else once it was deleted.
pub(crate) fn is_one_of_many(name: &str) -> bool {
    name.starts_with(SNAPSHOT) || name.starts_with(ARTIFACT)
}

/// The digest of a value, by which changes are noticed.
pub(crate) fn digest(name: &str, value: &Value) -> String {
    // Of an artifact, where its contents are does not count.
    let value = match name.starts_with(ARTIFACT) {
        true => value.get("artifact").unwrap_or(value),
        false => value,
    };
    // Maps are sorted by key, so a value has one text.
    let digest: [u8; 32] = Sha256::digest(value.to_string().as_bytes()).into();
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn to_value(value: &impl Serialize) -> SyncResult<Value> {
    serde_json::to_value(value)
        .map_err(|_| SyncError::State { reason: "a value cannot be written as JSON" })
}
