//! Settings, snapshots and artifacts as registers: of two values, the one with the higher stamp stays. A stamp is one more
//! than the highest that the device had seen, so no clock is asked.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};
use sottovoce::Scope;
use sottovoce::exchange::Exchange;

use crate::device::Device;
use crate::device::state::Known;
use crate::error::{SyncError, SyncResult};

/// What precedes a snapshot's id in a register's name.
pub(super) const SNAPSHOT: &str = "snapshot/";
/// What precedes an artifact's id.
pub(super) const ARTIFACT: &str = "artifact/";

/// A conversation's registers and their values, without those that never had any.
pub(super) async fn values(exchange: &Exchange) -> SyncResult<BTreeMap<String, Value>> {
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

/// The digest of a value, by which changes are noticed and ties are decided.
pub(super) fn digest(value: &Value) -> String {
    // Maps are sorted by key, so a value has one text.
    let digest: [u8; 32] = Sha256::digest(value.to_string().as_bytes()).into();
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn to_value(value: &impl serde::Serialize) -> SyncResult<Value> {
    serde_json::to_value(value)
        .map_err(|_| SyncError::State { reason: "a value cannot be written as JSON" })
}

impl Device {
    /// Gives stamps to what was changed on this device since it was last looked at.
    pub(super) fn stamp_changes(&mut self, scope: &Scope, values: &BTreeMap<String, Value>) {
        let registers = self.state.registers.entry(scope.to_string()).or_default();
        let gone = registers.keys().filter(|name| !values.contains_key(*name)).cloned();
        let unset: Vec<String> = gone.collect();
        let unset = unset.iter().map(|name| (name, &Value::Null));
        for (name, value) in values.iter().chain(unset) {
            let digest = digest(value);
            if registers.get(name).is_none_or(|known| known.digest != digest) {
                self.state.stamp += 1;
                let known = Known { stamp: self.state.stamp, digest, own: true };
                registers.insert(name.clone(), known);
            }
        }
    }
}
