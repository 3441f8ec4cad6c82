//! Deleting messages on record: on request, and by the retention rule.

pub(crate) mod cleanup;
pub(crate) mod forget;
pub(crate) mod forgotten_conversation;
pub(crate) mod limits;
pub(crate) mod plan;
pub(crate) mod prepared;
