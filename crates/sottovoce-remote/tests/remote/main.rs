//! Remotes: in memory, with faults, in a folder, on hostile servers and on real ones.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr
)]

#[cfg(all(feature = "s3", feature = "webdav"))]
mod cutter;
#[cfg(all(feature = "s3", feature = "webdav"))]
mod fake_server;
mod faults;
mod folder;
#[cfg(all(feature = "s3", feature = "webdav"))]
mod hostile;
mod opening;
#[cfg(all(feature = "s3", feature = "azure", feature = "webdav"))]
mod servers;
