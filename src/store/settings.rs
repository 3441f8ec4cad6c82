//! A conversation's own settings, and what is kept with them.

pub(crate) mod description;
pub(crate) mod forgotten;
pub(crate) mod presets;
pub(crate) mod profile;
pub(crate) mod summary;
