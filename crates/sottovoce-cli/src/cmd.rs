//! The commands: one file each, in the groups of `--help`.

pub(crate) mod backup;
pub(crate) mod forgetting;
pub(crate) mod import;
pub(crate) mod maintenance;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod memory;
#[cfg(feature = "page")]
pub(crate) mod page;
#[cfg(feature = "serve")]
pub(crate) mod serve;
#[cfg(any(feature = "mcp", feature = "page", feature = "serve", feature = "wyoming"))]
pub(crate) mod servers;
#[cfg(feature = "sync")]
pub(crate) mod share;
pub(crate) mod talk;
#[cfg(feature = "up")]
pub(crate) mod up;
#[cfg(feature = "wyoming")]
pub(crate) mod wyoming;
