//! The page with real connections: getting in, attacks on it, and what each view does.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "these are tests")]

#[path = "../../../../tests/common/hostile_clients.rs"]
mod hostile_clients;
#[path = "../../../../tests/common/ollama.rs"]
mod ollama;

mod entering;
mod flooding;
mod forgetting;
mod harness;
mod hostile;
mod personas;
mod reading;
mod sizes;
mod talking;
#[cfg(feature = "tls")]
mod tls;
