//! Remotes: in memory, with faults, in a folder, on hostile servers and on real ones.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr
)]

#[cfg(feature = "http")]
mod cutter;
#[cfg(feature = "http")]
mod fake_server;
mod faults;
mod folder;
#[cfg(feature = "http")]
mod hostile;
mod opening;
#[cfg(feature = "http")]
mod servers;
