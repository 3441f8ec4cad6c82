//! The server: its database, its routes, and what it does with hostile requests and with faults

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a failure is the test's result"
)]

#[path = "../../../../tests/common/hostile_clients.rs"]
mod hostile_clients;

mod contract;
mod description;
mod faults;
mod harness;
mod hidden;
mod http;
mod isolation;
mod limits;
mod members;
mod object_store;
mod records;
mod rights;
mod stored;
#[cfg(feature = "tls")]
mod tls;
mod together;
