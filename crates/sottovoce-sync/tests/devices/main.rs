//! Devices that share a memory, with real stores.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout
)]

mod faults;
mod home;
mod hostile;
mod house;
mod kill;
mod put_back;
mod simulation;
mod together;
