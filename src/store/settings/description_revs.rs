//! Which revision last changed each part of the description, by which the newer one of two stores' values is known.

use serde::{Deserialize, Serialize};

/// The revisions of the settings that last changed the title, the tags and the notes. A revision is higher than all that
/// the store had seen, also in imports, so of two values the one with the higher revision is the newer one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DescriptionRevs {
    pub(super) title: u64,
    pub(super) tags: u64,
    pub(super) metadata: u64,
}

impl DescriptionRevs {
    pub(crate) fn are_none(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn highest(&self) -> u64 {
        self.title.max(self.tags).max(self.metadata)
    }
}

/// A value and the revision that last changed it.
pub(super) struct Versioned<'a, T> {
    pub(super) value: &'a mut T,
    pub(super) rev: &'a mut u64,
}

impl<T: Clone + Default + PartialEq> Versioned<'_, T> {
    /// Takes the value of another store. Between conversations that have met before, the newer value counts, and the one
    /// here if neither is newer. Otherwise, only an empty value is replaced.
    pub(super) fn merge(self, there: &T, there_rev: u64, have_met: bool) {
        let is_empty = *self.value == T::default();
        let is_taken = match have_met {
            true => there_rev > *self.rev || is_empty && there_rev == *self.rev,
            false => is_empty && *there != T::default(),
        };
        if is_taken {
            self.value.clone_from(there);
        }
        if is_taken || *there != T::default() {
            // What was kept was kept in view of the other value, which therefore does not come back.
            *self.rev = there_rev.max(*self.rev);
        }
    }
}
