//! One verb, one file.

pub(crate) mod append;
pub(crate) mod artifact;
pub(crate) mod ask;
pub(crate) mod chat;
pub(crate) mod cleanup;
pub(crate) mod clear;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod conversations;
pub(crate) mod doctor;
pub(crate) mod forget;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod key;
pub(crate) mod models;
pub(crate) mod pack;
pub(crate) mod prompt;
pub(crate) mod rekey;
pub(crate) mod repair;
pub(crate) mod scopes;
pub(crate) mod settings;
pub(crate) mod snapshot;
pub(crate) mod stats;
pub(crate) mod tail;
pub(crate) mod verify;
