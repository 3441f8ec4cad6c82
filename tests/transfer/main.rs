//! Integration tests of imports, exports and backups.

#[path = "../common/mod.rs"]
mod common;

mod backup_hostile;
mod backup_merge;
mod backup_settings;
mod there_and_back;

mod export;
