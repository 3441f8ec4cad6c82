//! A conversation's settings, and the documents that belong to them.

pub(crate) mod description;
pub(crate) mod forgotten;
pub(crate) mod host_change;
pub(crate) mod presets;
pub(crate) mod profile;
pub(crate) mod summary;
pub(crate) mod withdrawal;
