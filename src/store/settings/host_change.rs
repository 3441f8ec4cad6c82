//! Changes of a conversation's settings that depend on what they say: what a host may change, and summaries.

use crate::store::record::seq_set::SeqSet;
use crate::store::settings::profile::Profile;
use crate::store::settings::summary::Summary;

impl Profile {
    /// These settings as a host has `changed` them. What is not for a host to say stays as it is.
    pub(crate) fn with_host_change(self, changed: Self) -> Self {
        let Self { rev, snapshots, restored, artifacts, imports, .. } = self;
        let Self { presets_rev, presets_are_unknown, forgotten_scopes, .. } = self;
        let changed = Self { presets_rev, presets_are_unknown, forgotten_scopes, ..changed };
        Self { rev, snapshots, restored, artifacts, imports, ..changed }
    }

    /// Whether a summary may be installed: `before` is the newest one of its thread, and none of the messages that it adds
    /// to that one was forgotten or cleared.
    pub(crate) fn may_install(
        &self,
        summary: &Summary,
        before: Option<&Summary>,
        forgotten: &SeqSet,
    ) -> bool {
        let known = before.map(|before| before.of().clone()).unwrap_or_default();
        let added = summary.of().without(&known);
        let cleared = self.cleared.map_or(0, |cleared| cleared.seq);
        let is_gone = |range: std::ops::RangeInclusive<u64>| {
            forgotten.intersects(&range) || *range.start() <= cleared
        };
        self.summary(summary.thread()) == before && !added.ranges().any(is_gone)
    }

    /// Installs a summary, in place of the newest one of its thread if it continues that one.
    pub(crate) fn install(&mut self, summary: Summary, continues: bool) {
        if continues {
            self.remove_summary(summary.thread());
        }
        self.add_summary(summary);
    }
}
