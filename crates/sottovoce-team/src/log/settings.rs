//! Settings, snapshots and artifacts of a shared conversation. Of two values the one that the server's log has later stays

use std::collections::BTreeMap;

use serde_json::Value;
use sottovoce::exchange::Exchange;
use sottovoce_sync::SyncResult;
use sottovoce_sync::values::{self, ARTIFACT};

/// The settings that members share. How much is kept, what was cleared and how far prompts reach back is everybody's own.
const SHARED: [&str; 4] = ["title", "tags", "metadata", "persona"];

/// The shared values by name, without those that are not set. A deleted artifact has `null`.
pub(crate) async fn shared(exchange: &Exchange) -> SyncResult<BTreeMap<String, Value>> {
    let mut values = values::values(exchange).await?;
    values.retain(|name, _| is_shared(name));
    Ok(values)
}

/// Whether members share a setting of that name.
pub(crate) fn is_shared(name: &str) -> bool {
    SHARED.contains(&name) || values::is_deleted_for_ever(name)
}

/// The digest of a value, by which changes are noticed.
pub(crate) fn digest(name: &str, value: &Value) -> String {
    // Of an artifact, where its contents are does not count.
    values::digest(match name.starts_with(ARTIFACT) {
        true => value.get("artifact").unwrap_or(value),
        false => value,
    })
}
