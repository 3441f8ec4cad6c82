//! The commands that `--help` lists under "Forget".

pub(crate) mod cleanup;
pub(crate) mod clear;
pub(crate) mod compact;
pub(crate) mod forget;
pub(crate) mod prune;
pub(crate) mod settings;
