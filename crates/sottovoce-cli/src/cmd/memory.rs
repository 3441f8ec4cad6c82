//! The commands that `--help` lists under "Remember".

pub(crate) mod append;
pub(crate) mod artifact;
pub(crate) mod context;
pub(crate) mod conversations;
pub(crate) mod persona;
pub(crate) mod recall;
pub(crate) mod scopes;
pub(crate) mod search;
pub(crate) mod snapshot;
pub(crate) mod stats;
pub(crate) mod tail;
pub(crate) mod understand;
