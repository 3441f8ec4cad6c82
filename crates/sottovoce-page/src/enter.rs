//! Getting in: the names of this server, the one-time link, the sessions of browsers, and locking.

mod gate;
mod names;
mod secret;

pub(crate) use gate::{Entry, Gate, TooManyGuesses, cookie};
pub(crate) use names::{Names, NotOurs};
