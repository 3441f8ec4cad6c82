//! Recall: finds what was said earlier in a conversation, without a model.

mod block;
mod index;
mod loaded;
mod provider;
mod results;
mod search;
mod text;

pub use index::Recall;
pub use provider::RecallContextProvider;
pub use results::{RecallHit, RecallQuery, Recalled, ScoreFloor};
pub use search::{Neighbours, SearchResults, neighbours};
pub use sottovoce_recall::{Hit, NotUnderstood, SearchQuery, Why};
