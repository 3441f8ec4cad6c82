//! What goes out of a store, and comes back in.

#[path = "../common/mod.rs"]
mod common;

mod backup_hostile;
mod backup_merge;
mod backup_settings;

mod export;
