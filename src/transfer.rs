//! Conversations in and out of stores: exports, imports of exports and of other systems, and what devices exchange.

mod arrivals;
pub mod exchange;
pub mod export;
pub mod import;
mod settings;
