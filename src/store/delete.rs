//! Deletes messages and records their numbers as forgotten: on request, or by retention.

pub(crate) mod cleanup;
pub(crate) mod forget;
pub(crate) mod forget_plan;
pub(crate) mod forgotten_conversation;
pub(crate) mod limits;
pub(crate) mod prepared_forget;
