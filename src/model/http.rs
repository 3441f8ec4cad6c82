//! What all model servers have in common: how they are reached, and how an answer comes.

mod answer;
mod buffer;
mod edit;
mod learnt;
mod near;
mod reason;
mod reply;
mod wire;

pub(super) use edit::Edit;
pub(super) use learnt::Learnt;
pub(super) use reason::words;
pub use reply::HttpReply;
pub(super) use reply::{Protocol, RawCall, Said};
pub(super) use wire::Wire;
