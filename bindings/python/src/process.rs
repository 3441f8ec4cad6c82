//! Ties native objects to the process that made them.

use std::fmt;
use std::sync::OnceLock;

use pyo3::PyErr;

use crate::error::ForkedError;

/// The process that first used the package.
static OWNER: OnceLock<u32> = OnceLock::new();

/// Checks that this is the process that first used the package. After `fork`, a child has the parent's objects but none
/// of its threads, and locks may be held by threads that do not exist.
pub(crate) fn check() -> Result<(), PyErr> {
    if is_forked() {
        return Err(ForkedError::new_err((
            "this process was forked from one that had used sottovoce already",
            "open the store after the fork, or start processes with multiprocessing's method \"spawn\"",
        )));
    }
    Ok(())
}

fn is_forked() -> bool {
    let own = std::process::id();
    *OWNER.get_or_init(|| own) != own
}

/// A native value that only its own process uses and drops.
pub(crate) struct OfProcess<T>(Option<T>);

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    pub(crate) fn get(&self) -> Result<&T, PyErr> {
        check()?;
        self.0.as_ref().ok_or_else(|| ForkedError::new_err(("the object is gone", "")))
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if is_forked() {
            // Dropping could wait for a lock of a thread that does not exist here.
            std::mem::forget(self.0.take());
        }
    }
}

impl<T> fmt::Debug for OfProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OfProcess")
    }
}
