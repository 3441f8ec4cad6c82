//! Recall: finds what was said earlier in a conversation, without a model.

mod block;
mod index;
mod provider;

pub use index::{Recall, RecallHit, RecallQuery, Recalled};
pub use provider::RecallContextProvider;
