//! The commands that `--help` lists under "Talk".

pub(crate) mod ask;
pub(crate) mod chat;
pub(crate) mod models;
pub(crate) mod prompt;
