//! The endpoint, between clients and a scripted model server.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "these are tests"
)]

#[path = "../../../../tests/common/hostile_clients.rs"]
mod hostile_clients;
#[path = "../../../../tests/common/ollama.rs"]
mod ollama;

mod harness;
mod hostile;
mod interrupted;
mod memory;
mod pass_through;
mod scopes;
mod sessions;
#[cfg(feature = "tls")]
mod tls;
mod tools;
mod turns;
