//! Integration tests of imports, exports and backups.

#[path = "../common/mod.rs"]
mod common;

mod backup_apart;
mod backup_hostile;
mod backup_merge;
mod backup_settings;
mod exchange;
mod exchange_beside;
mod exchange_index;
mod there_and_back;

mod export;
