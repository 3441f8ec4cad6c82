//! The commands that `--help` lists under "Back up".

pub(crate) mod export;
pub(crate) mod key;
