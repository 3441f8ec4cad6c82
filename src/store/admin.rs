//! Administration of a whole store: changing keys, moving it, and checking its catalog.

pub(crate) mod catalog_baseline;
pub(crate) mod catalog_check;
pub(crate) mod move_store;
pub(crate) mod rekey;
