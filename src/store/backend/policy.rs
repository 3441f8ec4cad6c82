//! What a store accepts, and how much it keeps.

use crate::store::record::retention::Retention;

/// What a store accepts and how much it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StorePolicy {
    /// How much is kept of conversations that have no limits of their own.
    pub retention: Retention,
    /// The most bytes of a message as JSON, and of a document that a host writes.
    pub max_message_bytes: usize,
}

impl Default for StorePolicy {
    fn default() -> Self {
        Self { retention: Retention::FOREVER, max_message_bytes: 1 << 20 }
    }
}

impl StorePolicy {
    /// Sets the limits of conversations that have none of their own.
    #[must_use]
    pub fn retention(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// Sets the size limit of a message.
    #[must_use]
    pub fn max_message_bytes(self, max_message_bytes: usize) -> Self {
        Self { max_message_bytes, ..self }
    }
}
