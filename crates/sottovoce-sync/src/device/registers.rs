//! Settings, snapshots and artifacts as registers: of two values, the one with the higher stamp stays. A stamp is one more
//! than the highest that the device had seen, so no clock is asked.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest, Sha256};
use sottovoce::Scope;
use sottovoce::exchange::Exchange;

use crate::device::Device;
use crate::device::state::{Known, State};
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

/// Whether a register that was deleted never has a value again: snapshots and artifacts have random ids.
pub(super) fn is_deleted_for_ever(name: &str) -> bool {
    name.starts_with(SNAPSHOT) || name.starts_with(ARTIFACT)
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
        let text = scope.to_string();
        let known = self.state.registers.get(&text).into_iter().flat_map(BTreeMap::keys);
        let is_unset =
            |name: &&String| !values.contains_key(*name) && !self.state.is_arriving(&text, name);
        let unset: Vec<String> = known.filter(is_unset).cloned().collect();
        let registers = self.state.registers.entry(text).or_default();
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

impl State {
    /// The value of a register for others. `None` for an artifact or a snapshot that has not arrived here completely: that
    /// it is not here does not mean that it was deleted.
    pub(super) fn to_publish(
        &self,
        scope: &str,
        name: &str,
        values: &BTreeMap<String, Value>,
    ) -> Option<Value> {
        if let Some(value) = values.get(name) {
            return Some(value.clone());
        }
        (!self.is_arriving(scope, name)).then_some(Value::Null)
    }

    /// Whether a register's value is not here because parts of it have not arrived.
    pub(super) fn is_arriving(&self, scope: &str, name: &str) -> bool {
        let is_wanted = |id| self.wanted.get(scope).is_some_and(|ids| ids.contains_key(id));
        let is_waiting = |id| self.waiting.get(scope).is_some_and(|ids| ids.contains_key(id));
        name.strip_prefix(ARTIFACT).is_some_and(is_wanted)
            || name.strip_prefix(SNAPSHOT).is_some_and(is_waiting)
    }
}
