//! Checks a conversation without changing it.

pub(crate) mod baseline;
pub(crate) mod record_index;
pub(crate) mod repair_kind;
pub(crate) mod report;
pub(crate) mod verify;
pub(crate) mod verify_scan;
