//! How a database is used

use std::time::Duration;

/// How a database is used.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct DatabaseOptions {
    /// The most connections of this process to PostgreSQL: 16.
    pub connections: usize,
    /// How long a request waits for a free connection: 2 seconds.
    pub wait: Duration,
    /// How long one statement may take: 30 seconds.
    pub statement: Duration,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self { connections: 16, wait: Duration::from_secs(2), statement: Duration::from_secs(30) }
    }
}
