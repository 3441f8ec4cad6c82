//! Words of a conversation, in memory that is overwritten before it is freed.

use std::{borrow::Borrow, fmt};

use zeroize::Zeroize;

/// A word or name that somebody said. Overwritten on drop; never shown by `Debug`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Word(Box<str>);

impl Word {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Word {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl Borrow<str> for Word {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Drop for Word {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Word(..)")
    }
}
