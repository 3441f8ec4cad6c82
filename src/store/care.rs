//! Care for stores: checks, repairs, inventories, changing keys, and moving a store.

pub(crate) mod baseline;
pub(crate) mod catalog_baseline;
pub(crate) mod catalog_check;
mod checks;
pub(crate) mod move_store;
pub(crate) mod record_index;
pub(crate) mod rekey;
pub(crate) mod repair;
pub(crate) mod repair_kind;
pub(crate) mod verify;
pub(crate) mod verify_scan;
