//! What a sync has done, what it is doing, and what the devices are

use jiff::Timestamp;

use crate::device::selection::Selection;
use crate::id::Id;

/// What a sync has done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncReport {
    /// Messages of other devices that were stored here.
    pub received: usize,
    /// Messages here that others have forgotten, and that are forgotten here too.
    pub removed: usize,
    /// Artifacts of other devices that were stored here.
    pub artifacts: usize,
    /// Messages of this device that were published.
    pub published: usize,
    /// Messages that were forgotten here and whose forgetting was published.
    pub forgotten: usize,
    /// Whether this device left its stream for a new one: the remote, or this store, was not in the state that it was
    /// left in.
    pub began_again: bool,
    /// What could not be used. Everything else was done.
    pub problems: Vec<Problem>,
}

impl SyncReport {
    /// The report with each problem once: a sync that began again may have met it twice.
    pub(crate) fn without_repetitions(mut self) -> Self {
        let mut problems = Vec::new();
        for problem in std::mem::take(&mut self.problems) {
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        Self { problems, ..self }
    }
}

/// Something at the remote that could not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// There are names of more than 256 devices.
    #[error("the remote lists more than 256 devices; those beyond were left out")]
    TooManyDevices,
    /// An object is cut off, changed, or of another version.
    #[error("{place}: {reason}")]
    Unusable {
        /// Where it is.
        place: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Segments that a device's head lists are not there.
    #[error("{name}: some of what it published is not at the remote")]
    Incomplete {
        /// The device.
        device: Id,
        /// Its name.
        name: String,
    },
    /// A device that published before has no head any more.
    #[error("{name}: what it published is gone from the remote")]
    Missing {
        /// The device.
        device: Id,
        /// Its name.
        name: String,
    },
    /// A device's head is older than one that was read before.
    #[error("{name}: the remote returned an older state than before; nothing was undone here")]
    RolledBack {
        /// The device.
        device: Id,
        /// Its name.
        name: String,
    },
    /// Others have read more of a device than the remote returns here.
    #[error("{name}: others have read more of it than the remote returns here")]
    Withheld {
        /// The device.
        device: Id,
        /// Its name.
        name: String,
    },
    /// A device has other messages than this one, though each has read what the other has published.
    #[error("{name}: it has other messages than this device in {conversations} conversation{}", if *.conversations == 1 { "" } else { "s" })]
    Differs {
        /// The device.
        device: Id,
        /// Its name.
        name: String,
        /// In how many conversations.
        conversations: usize,
    },
    /// An artifact's contents cannot be read here, or are not at the remote.
    #[error("artifact {id}: its contents are not there")]
    Artifact {
        /// The artifact.
        id: String,
    },
    /// A conversation's name cannot be read.
    #[error("a conversation has a name that is not valid here")]
    UnknownScope,
    /// A setting's value cannot be read: a newer version of this program may have written it.
    #[error("a setting has a value that is not valid here")]
    UnknownSetting,
}

impl Problem {
    /// Whether mending, on a device that has the messages, ends it.
    pub fn is_mended(&self) -> bool {
        matches!(self, Self::Incomplete { .. } | Self::Missing { .. } | Self::Differs { .. })
    }
}

/// What a sync is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncProgress {
    /// It reads another device's stream. Both numbers are bytes.
    Receiving {
        /// How much was read.
        done: u64,
        /// How much there is.
        total: u64,
    },
    /// It publishes. Both numbers are messages.
    Publishing {
        /// How many were published.
        done: usize,
    },
}

/// A space as a device sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncStatus {
    /// The remote's address.
    pub address: String,
    /// This device.
    pub device: Id,
    /// Its name.
    pub name: String,
    /// Which conversations it shares.
    pub selection: Selection,
    /// When it last received and published everything.
    pub synced_at: Option<Timestamp>,
    /// How many conversations have changed here since then.
    pub unpublished: usize,
    /// The other devices, by name.
    pub peers: Vec<DeviceStatus>,
    /// Whether the space was closed, so that this device has to join another.
    pub is_closed: bool,
}

/// Another device of the space.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceStatus {
    /// Its identifier.
    pub id: Id,
    /// Its name.
    pub name: String,
    /// When it last published, by its own clock.
    pub published_at: Option<Timestamp>,
    /// How many of its publishes were not read here yet.
    pub unread: u64,
    /// How many of this device's publishes it has not read yet, as far as it has told. What was forgotten in those may
    /// still be there.
    pub behind: u64,
}
