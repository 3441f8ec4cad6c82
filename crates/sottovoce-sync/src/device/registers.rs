//! Settings, snapshots and artifacts as registers: of two values, the one with the higher stamp stays. A stamp is one more
//! than the highest that the device had seen, so no clock is asked.

use std::collections::BTreeMap;

use serde_json::Value;
use sottovoce::Scope;

use crate::device::Device;
use crate::device::state::{Known, State};
use crate::values::{ARTIFACT, SNAPSHOT, digest};

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
