//! The search index over a real store: it finds what is there, nothing else, and leaves nothing behind.
#![cfg(feature = "recall")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "these are tests"
)]

#[path = "../common/mod.rs"]
mod common;

mod damage;
mod home;
mod hostile;
mod interrupted;
mod isolation;
#[path = "../common/log.rs"]
mod log;
#[path = "../common/memory.rs"]
mod memory_search;
mod model;
mod residue;
mod understanding;
mod walk;
