//! Slots for connections: a few for strangers, which have not shown the token yet, and others for admitted clients.
//!
//! If there are too many strangers, the server closes the oldest one and accepts the newest. Silent strangers
//! therefore never keep a client out, because a client shows the token with its first request.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::transport::http::Limits;

/// The open connections.
#[derive(Debug)]
pub(super) struct ConnectionSlots {
    limits: Limits,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    /// By number, so that the first is the oldest.
    strangers: BTreeMap<u64, Stranger>,
    clients: BTreeSet<u64>,
}

#[derive(Debug)]
struct Stranger {
    peer: IpAddr,
    closed: CancellationToken,
}

/// The place of one connection. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    places: Arc<ConnectionSlots>,
    number: u64,
    closed: CancellationToken,
}

impl ConnectionSlots {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, taken: Mutex::default() })
    }

    /// Takes a stranger's place. Another stranger may be closed for it.
    pub(super) fn enter(self: &Arc<Self>, peer: IpAddr) -> ConnectionSlot {
        let (peer, closed) = (network(peer), CancellationToken::new());
        let mut taken = self.taken();
        let number = taken.next;
        taken.next += 1;
        taken.strangers.insert(number, Stranger { peer, closed: closed.clone() });
        if let Some(number) = taken.one_too_many(peer, &self.limits)
            && let Some(stranger) = taken.strangers.remove(&number)
        {
            stranger.closed.cancel();
        }
        drop(taken);
        ConnectionSlot { places: Arc::clone(self), number, closed }
    }

    fn taken(&self) -> std::sync::MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Chooses the stranger to close after one came from `peer`: the oldest from the same address, or else the oldest
    /// from the address with the most.
    fn one_too_many(&self, peer: IpAddr, limits: &Limits) -> Option<u64> {
        let mut from: HashMap<IpAddr, usize> = HashMap::new();
        for stranger in self.strangers.values() {
            *from.entry(stranger.peer).or_default() += 1;
        }
        let crowded = match from.get(&peer) {
            Some(&count) if count > limits.strangers_from_one_address => peer,
            _ if self.strangers.len() > limits.strangers => {
                *from.iter().max_by_key(|(_, count)| **count)?.0
            }
            _ => return None,
        };
        self.strangers.iter().find(|(_, stranger)| stranger.peer == crowded).map(|(n, _)| *n)
    }
}

impl ConnectionSlot {
    /// Turns the place into a client's. Returns false if there is none left, or the connection is being closed.
    pub(super) fn admit(&self) -> bool {
        let mut taken = self.places.taken();
        if taken.clients.contains(&self.number) {
            return true;
        }
        let is_free = taken.clients.len() < self.places.limits.clients;
        let is_admitted = is_free && taken.strangers.remove(&self.number).is_some();
        if is_admitted {
            taken.clients.insert(self.number);
        }
        is_admitted
    }

    /// Cancelled when the connection must close.
    pub(super) fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.strangers.remove(&self.number);
        taken.clients.remove(&self.number);
    }
}

/// The unit that counts as one address. For IPv6 it is the /64 network, because a machine may use any address in it.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(strangers: usize, from_one: usize, clients: usize) -> Arc<ConnectionSlots> {
        let limits = Limits {
            strangers,
            strangers_from_one_address: from_one,
            clients,
            ..Limits::default()
        };
        ConnectionSlots::new(limits)
    }

    fn enter(places: &Arc<ConnectionSlots>, peer: &str) -> ConnectionSlot {
        places.enter(peer.parse().unwrap())
    }

    #[test]
    fn the_stranger_that_waited_longest_makes_room() {
        let places = places(3, 2, 1);
        let one: Vec<_> = (0..3).map(|_| enter(&places, "10.0.0.1")).collect();
        let closed = |place: &ConnectionSlot| place.closed().is_cancelled();
        assert_eq!(one.iter().map(closed).collect::<Vec<_>>(), [true, false, false]);
        // The address with the most strangers loses one.
        let other = [enter(&places, "10.0.0.2"), enter(&places, "10.0.0.3")];
        assert_eq!(one.iter().map(closed).collect::<Vec<_>>(), [true, true, false]);
        assert!(!other.iter().any(closed));
        assert!(!one[0].admit(), "who is being closed is not let in any more");
    }

    #[test]
    fn clients_do_not_count_as_strangers_nor_strangers_as_clients() {
        let places = places(2, 2, 1);
        let client = enter(&places, "::1");
        assert!(client.admit() && client.admit());
        let strangers: Vec<_> = (0..9).map(|_| enter(&places, "::1")).collect();
        assert!(!client.closed().is_cancelled());
        let newest = strangers.last().unwrap();
        assert!(!newest.closed().is_cancelled() && !newest.admit());
        drop(client);
        assert!(newest.admit());
        drop((strangers, enter(&places, "::1")));
        assert!(places.taken().strangers.is_empty() && places.taken().clients.is_empty());
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        let of = |peer: &str| network(peer.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2:ffff::"));
        assert_ne!(of("2001:db8:1:2::"), of("2001:db8:1:3::"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
