//! Limits of connections, of times and of memory

use std::time::Duration;

/// How many connections there are, how long they may take, and how much they may hold.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    /// The most connections of clients, which have asked something: 256. One more closes the one that has been idle longest. If none is idle,
    /// it is refused.
    pub connections: usize,
    /// The most connections that have not asked anything yet: 64. One more closes the oldest of them.
    pub strangers: usize,
    /// The most of these from one IPv4 address or one IPv6 network: 64.
    pub strangers_from_one_address: usize,
    /// How long the head of a request may take, how long TLS may take, and how long a connection may be silent between
    /// two requests: 60 seconds.
    pub head: Duration,
    /// How long the body of a request may take: 60 seconds.
    pub body: Duration,
    /// How long a client may take nothing of an answer: 120 seconds.
    pub unread: Duration,
    /// How long answers in progress may go on after the server was told to stop: 5 seconds.
    pub grace: Duration,
    /// The most bytes in memory of the bodies of all requests, without those up to 64 KiB, and as many of all answers: 32 MiB each.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self {
            connections: 256,
            strangers: 64,
            strangers_from_one_address: 64,
            head: minute,
            body: minute,
            unread: minute * 2,
            grace: minute / 12,
            memory: 32 << 20,
        }
    }
}

impl Limits {
    /// The usual limits with this many connections, and a quarter as many that have not asked anything yet, but at most 1,000.
    #[must_use]
    pub fn of(connections: usize) -> Self {
        let strangers = (connections / 4).clamp(1, 1000);
        Self { connections, strangers, strangers_from_one_address: strangers, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_connections_may_be_of_strangers_but_at_least_one_and_at_most_a_thousand() {
        let strangers = |connections| Limits::of(connections).strangers;
        assert_eq!([1, 256, 1_000_000].map(strangers), [1, 64, 1000]);
        let limits = Limits::of(1000);
        assert_eq!((limits.connections, limits.strangers_from_one_address), (1000, 250));
    }
}
