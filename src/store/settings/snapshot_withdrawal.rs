//! Which snapshots change when messages are forgotten, and what the settings then list.

use crate::store::record::seq_set::SeqSet;
use crate::store::record::snapshot::Snapshot;
use crate::store::settings::profile::Profile;

/// What becomes of snapshots when messages are taken out of them.
#[derive(Debug, Default)]
pub(crate) struct Withdrawal {
    /// Those to write again, with their next revisions.
    pub(crate) changed: Vec<Snapshot>,
    /// Ids of those that nothing is left of, and whether another system saved them.
    pub(crate) emptied: Vec<(String, bool)>,
    /// How many held any of the messages.
    pub(crate) count: usize,
    /// The revisions to list.
    revisions: Vec<(String, u64)>,
}

impl Withdrawal {
    /// Takes the messages out. A listed snapshot that `is_unread` gets another revision, so that it is never read again.
    pub(crate) fn of(
        snapshots: Vec<Snapshot>,
        is_unread: impl Fn(&str) -> bool,
        seqs: &SeqSet,
        profile: &Profile,
    ) -> Self {
        let mut outcome = Self::default();
        for mut snapshot in snapshots {
            let listed = profile.revision(&snapshot.id);
            let (had_any, is_imported) = (!snapshot.messages.is_empty(), snapshot.is_imported());
            let is_changed = snapshot.remove_messages(seqs);
            if is_changed {
                outcome.count += 1;
                if had_any && snapshot.messages.is_empty() {
                    outcome.emptied.push((snapshot.id.clone(), is_imported));
                    continue;
                }
                snapshot.rev += 1;
            }
            // A forgetting that was broken off may have left one that is newer than its listing.
            if listed.is_some_and(|listed| listed < snapshot.rev) {
                outcome.revisions.push((snapshot.id.clone(), snapshot.rev));
            }
            if is_changed {
                outcome.changed.push(snapshot);
            }
        }
        let unread = profile.listed().filter(|(id, _)| is_unread(id));
        outcome.revisions.extend(unread.map(|(id, rev)| (id.to_owned(), rev.saturating_add(1))));
        outcome
    }

    /// Whether the settings list anything else afterwards.
    pub(crate) fn changes(&self, profile: &Profile) -> bool {
        !self.revisions.is_empty()
            || self.emptied.iter().any(|(id, _)| profile.revision(id).is_some())
    }

    /// Lists what there is afterwards.
    pub(crate) fn apply(&self, profile: &mut Profile) {
        profile.snapshots.extend(self.revisions.iter().cloned());
        self.emptied.iter().for_each(|(id, is_imported)| profile.unlist(id, *is_imported));
    }
}
