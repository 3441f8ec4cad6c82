//! The commands that `--help` lists under "Look after".

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod pack;
pub(crate) mod rekey;
pub(crate) mod repair;
pub(crate) mod verify;
