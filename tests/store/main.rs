//! Integration tests of the encrypted store, by hazard.

#[path = "../common/mod.rs"]
mod common;

mod artifacts;
mod beside;
mod concurrency;
mod crash;
mod file_systems;
mod format;
mod hostile;
mod inventory;
mod isolation;
mod keys;
mod memory;
mod mishaps;
mod moving;
mod packs;
mod repair;
mod retention;
mod search;
mod snapshots;
mod sqlite_chat;
mod sqlite_store;
mod walk;
