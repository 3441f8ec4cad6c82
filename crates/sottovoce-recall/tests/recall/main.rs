//! The crate from outside: ranking, search, languages and hostile texts.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "these are tests")]

mod changes;
mod conversations;
mod days;
mod encoding;
mod gate;
mod homes;
mod hostile;
mod languages;
mod memory;
#[path = "../../../../tests/common/memory.rs"]
mod memory_search;
mod ranking;
mod search;
