//! Compares what devices have while nobody writes: then all of them should have the same

use crate::device::Device;
use crate::id::Id;
use crate::report::{Problem, SyncReport};

impl Device {
    /// Reports devices that have other messages than this one, though each has read all that the other has published.
    /// Returns them.
    pub(super) fn compare(&self, report: &mut SyncReport) -> Vec<Id> {
        let state = &self.state;
        let here = state.own.digests(&state.selection);
        let mut differing = Vec::new();
        for (device, head) in &self.heads {
            let Some(peer) = state.peers.get(device) else { continue };
            let mut seen = head.seen.clone();
            let has_read_this = seen.remove(&state.device).unwrap_or(0) == state.own.last.0;
            let mut read = state.seen();
            read.remove(device);
            seen.retain(|device, _| state.peers.contains_key(device));
            if !has_read_this || peer.read != head.last || seen != read {
                continue;
            }
            let is_other = |(scope, has)| head.has.get(scope).is_some_and(|there| there != has);
            let conversations = here.iter().filter(|entry| is_other(*entry)).count();
            if conversations > 0 {
                let name = self.name_of(*device);
                report.problems.push(Problem::Differs { device: *device, name, conversations });
                differing.push(*device);
            }
        }
        differing
    }
}
