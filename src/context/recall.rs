//! Recall: finds what was said earlier in a conversation, without a model.

mod block;
mod document;
mod excerpt;
mod index;
mod loaded;
mod lookup;
mod meaning;
mod provider;
mod results;
mod same_words;
mod search;
mod select;
mod text;
mod understand;

pub use super::recall_sources::RecallSources;
pub use index::Recall;
pub use lookup::{Found, FoundMessage, Lookup, Passage, Stage};
pub use provider::RecallContextProvider;
pub use results::{RecallHit, RecallQuery, Recalled, ScoreFloor, best_of};
pub use same_words::{SameWords, TellingWords};
pub use search::{Neighbours, SearchResults, neighbours};
pub use select::Selection;
pub use sottovoce_recall::{Hit, NotUnderstood, SearchQuery, Why};
pub use understand::Understood;
