//! Limits of connections, requests and rates

use std::time::Duration;

/// How much of something is allowed: this much a second in the long run, and this much at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// How much becomes allowed each second.
    pub per_second: f64,
    /// The most that may be used at once.
    pub burst: f64,
}

/// Limits of the server. Rates are counted by each process for itself.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    /// Those of connections: at most 10,000, 30 seconds for a head, 60 for a body and for an answer that is not read, 10 to end, and 256 MiB
    /// for all bodies in memory.
    pub net: sottovoce_net::Limits,
    /// How often the server looks for records that another process appended: every 500 milliseconds.
    pub look: Duration,
    /// How often the upkeep runs: every hour.
    pub upkeep: Duration,
    /// Requests of a member: 50 a second, 500 at once.
    pub member_requests: Rate,
    /// Bytes that a member sends: 2 MiB a second, 1 GiB at once.
    pub member_bytes: Rate,
    /// Requests of an organisation: 1,000 a second, 5,000 at once.
    pub org_requests: Rate,
    /// Requests without a valid token from one address: 5 a second, 50 at once.
    pub strangers: Rate,
    /// Whether all requests come from a proxy, whose header `X-Forwarded-For` ends with the address that asks: no.
    pub is_behind_proxy: bool,
}

impl Default for Limits {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        let mut net = sottovoce_net::Limits::of(10_000);
        (net.head, net.unread, net.grace) = (minute / 2, minute, minute / 6);
        net.memory = 256 << 20;
        Self {
            net,
            look: Duration::from_millis(500),
            upkeep: minute * 60,
            member_requests: Rate { per_second: 50.0, burst: 500.0 },
            member_bytes: Rate { per_second: f64::from(2 << 20), burst: f64::from(1 << 30) },
            org_requests: Rate { per_second: 1_000.0, burst: 5_000.0 },
            strangers: Rate { per_second: 5.0, burst: 50.0 },
            is_behind_proxy: false,
        }
    }
}
