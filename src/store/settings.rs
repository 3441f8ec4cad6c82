//! A conversation's settings, and the documents that belong to them.

pub(crate) mod description;
mod description_revs;
pub(crate) mod forgotten_conversations;
pub(crate) mod host_change;
pub(crate) mod presets_document;
pub(crate) mod profile;
pub(crate) mod snapshot_withdrawal;
pub(crate) mod stored;
pub(crate) mod summary;
pub(crate) mod tombstones;
