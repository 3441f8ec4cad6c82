//! The agent, between clients of the Wyoming protocol and a scripted model server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

#[path = "../../../../tests/common/hostile_clients.rs"]
mod hostile_clients;
#[path = "../../../../tests/common/ollama.rs"]
mod ollama;

mod harness;
mod hostile;
mod turns;
