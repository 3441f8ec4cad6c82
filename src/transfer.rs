//! Conversations in and out of stores: exports, and imports of exports and of other systems.

pub mod export;
pub mod import;
