//! The error of a data file that cannot be used.

use std::fmt;

/// The encoder's data cannot be used. The program was built from a damaged or foreign file: build it again from a clean checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub(crate) what: &'static str,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the encoder's data file: {}: build the program again from a clean checkout",
            self.what
        )
    }
}

impl std::error::Error for Error {}
