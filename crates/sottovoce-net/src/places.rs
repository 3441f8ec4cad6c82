//! Places for connections: a few for strangers, which have not asked anything yet, and others for clients
//!
//! One stranger too many closes the oldest, and one client too many the one that has been idle longest. Silent connections therefore never
//! keep a client out, because a client asks with its first bytes.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Response;
use hyper::body::Incoming;
use tokio::io::AsyncRead;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::body::Body;
use crate::limits::Limits;
use crate::memory::{Held, Memory, ReadError};

/// The open connections of a server, which may listen on several addresses.
#[derive(Debug)]
pub struct Places {
    limits: Limits,
    requests: Memory,
    answers: Memory,
    taken: Mutex<Taken>,
    tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    /// By network. The first of each is the oldest.
    strangers: HashMap<IpAddr, BTreeMap<u64, CancellationToken>>,
    /// Clients without a request. The first has been idle longest.
    idle: BTreeMap<u64, CancellationToken>,
    /// How many clients have a request.
    busy: usize,
}

/// A connection and its place. Dropping it frees the place.
#[derive(Debug, Clone)]
pub struct Connection(Arc<Place>);

#[derive(Debug)]
struct Place {
    places: Arc<Places>,
    peer: SocketAddr,
    closed: CancellationToken,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Stranger(u64),
    Idle(u64),
    /// With this many requests.
    Busy(usize),
}

/// Who sends a request, on a connection that has a place.
#[derive(Debug, Clone)]
pub struct Client(Arc<Request>);

/// A request in progress on a connection. Dropping the last one makes the connection idle.
#[derive(Debug)]
struct Request {
    place: Arc<Place>,
    is_admitted: Mutex<bool>,
}

impl Places {
    /// Places within these limits.
    pub fn new(limits: Limits) -> Arc<Self> {
        let (taken, tasks) = (<_>::default(), <_>::default());
        let (requests, answers) = (Memory::new(limits.memory), Memory::new(limits.memory));
        Arc::new(Self { limits, requests, answers, taken, tasks })
    }

    /// Waits until all connections have ended, for this long. Returns whether they have.
    pub async fn wait(&self, time: Duration) -> bool {
        self.tasks.close();
        tokio::time::timeout(time, self.tasks.wait()).await.is_ok()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn spawn(&self, serving: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(serving);
    }

    /// Takes a stranger's place. Another stranger may be closed for it.
    pub(crate) fn enter(self: &Arc<Self>, peer: SocketAddr) -> Connection {
        let (network, closed) = (network(peer.ip()), CancellationToken::new());
        let mut taken = self.taken();
        let number = taken.number();
        taken.strangers.entry(network).or_default().insert(number, closed.clone());
        if let Some(stranger) = taken.one_too_many(network, &self.limits) {
            stranger.cancel();
        }
        drop(taken);
        let state = Mutex::new(State::Stranger(number));
        Connection(Arc::new(Place { places: Arc::clone(self), peer, closed, state }))
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        lock(&self.taken)
    }
}

impl Taken {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The stranger to close after one came from `network`: the oldest of the same, or else the oldest of the network with the most.
    fn one_too_many(&mut self, network: IpAddr, limits: &Limits) -> Option<CancellationToken> {
        let all: usize = self.strangers.values().map(BTreeMap::len).sum();
        let from_here = self.strangers.get(&network).map_or(0, BTreeMap::len);
        let crowded = match () {
            () if from_here > limits.strangers_from_one_address => network,
            () if all > limits.strangers => {
                *self.strangers.iter().max_by_key(|(_, those)| those.len())?.0
            }
            () => return None,
        };
        Some(self.strangers.get_mut(&crowded)?.pop_first()?.1)
    }

    /// Takes a stranger out of the list. Returns whether it was there.
    fn remove(&mut self, network: IpAddr, number: u64) -> bool {
        let Some(those) = self.strangers.get_mut(&network) else { return false };
        let was_there = those.remove(&number).is_some();
        if those.is_empty() {
            self.strangers.remove(&network);
        }
        was_there
    }

    /// Makes room for one more client: the one that has been idle longest is closed. Returns false if all have requests.
    fn make_room(&mut self, most: usize) -> bool {
        if self.idle.len() + self.busy < most {
            return true;
        }
        self.idle.pop_first().map(|(_, oldest)| oldest.cancel()).is_some()
    }
}

impl Connection {
    /// The address of the other end.
    pub fn peer(&self) -> SocketAddr {
        self.0.peer
    }

    /// Reads so many bytes that the client sends, within the limits of time and of memory.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn read<R>(&self, from: &mut R, length: usize) -> Result<Held, ReadError>
    where
        R: AsyncRead + Unpin,
    {
        let places = &self.0.places;
        places.requests.read_exact(from, length, places.limits.body).await
    }

    /// The limits of the server.
    pub fn limits(&self) -> &Limits {
        &self.0.places.limits
    }

    /// Who sends the next request.
    pub fn client(&self) -> Client {
        Client(Arc::new(Request { place: Arc::clone(&self.0), is_admitted: Mutex::default() }))
    }

    /// Cancelled when the connection must close.
    pub(crate) fn closed(&self) -> CancellationToken {
        self.0.closed.clone()
    }
}

impl Client {
    /// Its address, or that of a proxy.
    pub fn address(&self) -> IpAddr {
        self.0.place.peer.ip()
    }

    /// Lets the request in: until its answer has ended, no other connection takes the place of this one. Returns false if there are too
    /// many clients, or the connection is being closed.
    pub fn admit(&self) -> bool {
        let mut is_admitted = lock(&self.0.is_admitted);
        *is_admitted = *is_admitted || self.0.place.admit();
        *is_admitted
    }

    /// Reads the body of the request, of at most `most` bytes, within the limits of time and of memory.
    ///
    /// # Errors
    /// [`ReadError`].
    pub async fn read(&self, body: Incoming, most: usize) -> Result<Held, ReadError> {
        let places = &self.0.place.places;
        places.requests.read(body, most, places.limits.body).await
    }

    /// Takes memory for an answer of so many bytes, before it is there.
    ///
    /// # Errors
    /// [`ReadError::Busy`].
    pub fn take(&self, bytes: usize) -> Result<Held, ReadError> {
        self.0.place.places.answers.take(bytes)
    }

    /// Takes memory for a whole answer until it is sent, unless it has it already.
    ///
    /// # Errors
    /// [`ReadError::Busy`]. The answer is gone then.
    pub fn hold(&self, answer: Response<Body>) -> Result<Response<Body>, ReadError> {
        let length = answer.body().unheld().and_then(|length| usize::try_from(length).ok());
        let Some(length) = length else { return Ok(answer) };
        let held = self.take(length)?;
        Ok(answer.map(|body| body.holding(held)))
    }
}

impl Place {
    fn admit(&self) -> bool {
        let (mut state, mut taken) = (lock(&self.state), self.places.taken());
        let is_open = match *state {
            State::Stranger(number) => {
                let network = network(self.peer.ip());
                let those = taken.strangers.get(&network);
                those.is_some_and(|those| those.contains_key(&number))
                    && taken.make_room(self.places.limits.connections)
                    && taken.remove(network, number)
            }
            State::Idle(number) => taken.idle.remove(&number).is_some(),
            State::Busy(requests) => {
                *state = State::Busy(requests + 1);
                return true;
            }
        };
        if is_open {
            taken.busy += 1;
            *state = State::Busy(1);
        }
        is_open
    }

    fn rest(&self) {
        let (mut state, mut taken) = (lock(&self.state), self.places.taken());
        match *state {
            State::Busy(1) => {
                taken.busy = taken.busy.saturating_sub(1);
                let number = taken.number();
                taken.idle.insert(number, self.closed.clone());
                *state = State::Idle(number);
            }
            State::Busy(requests) => *state = State::Busy(requests.saturating_sub(1)),
            State::Stranger(_) | State::Idle(_) => {}
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if *lock(&self.is_admitted) {
            self.place.rest();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let (state, mut taken) = (*lock(&self.state), self.places.taken());
        match state {
            State::Stranger(number) => drop(taken.remove(network(self.peer.ip()), number)),
            State::Idle(number) => drop(taken.idle.remove(&number)),
            State::Busy(_) => taken.busy = taken.busy.saturating_sub(1),
        }
    }
}

/// Locks what many share. What a panic left behind is used as it is.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The unit that counts as one address. For IPv6 it is the /64 network, because a machine may use any address in it.
pub fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(strangers: usize, from_one: usize, connections: usize) -> Arc<Places> {
        Places::new(Limits {
            strangers,
            strangers_from_one_address: from_one,
            connections,
            ..Limits::default()
        })
    }

    fn enter(places: &Arc<Places>, peer: &str) -> Connection {
        places.enter(SocketAddr::new(peer.parse().unwrap(), 7))
    }

    fn closed(connection: &Connection) -> bool {
        connection.closed().is_cancelled()
    }

    #[test]
    fn the_stranger_that_waited_longest_makes_room() {
        let places = places(3, 2, 1);
        let one: Vec<_> = (0..3).map(|_| enter(&places, "10.0.0.1")).collect();
        assert_eq!(one.iter().map(closed).collect::<Vec<_>>(), [true, false, false]);
        // The address with the most strangers loses one.
        let other = [enter(&places, "10.0.0.2"), enter(&places, "10.0.0.3")];
        assert_eq!(one.iter().map(closed).collect::<Vec<_>>(), [true, true, false]);
        assert!(!other.iter().any(closed));
        assert!(!one[0].client().admit(), "who is being closed is not let in any more");
    }

    #[test]
    fn the_client_that_was_idle_longest_makes_room() {
        let places = places(9, 9, 2);
        let all: Vec<_> = (0..3).map(|_| enter(&places, "::1")).collect();
        let first = all[0].client();
        assert!(first.admit() && first.admit());
        assert!(all[1].client().admit(), "and is idle at once");
        assert!(all[2].client().admit());
        assert_eq!([closed(&all[0]), closed(&all[1])], [false, true], "one with a request stays");
        drop(first.clone());
        let third = all[2].client();
        assert!(third.admit());
        let another = enter(&places, "::1");
        assert!(!another.client().admit(), "all have requests");
        assert!(!closed(&another), "so that it can be told");
        drop(first);
        assert!(another.client().admit());
        assert!(closed(&all[0]), "it was idle again");
        drop((all, another, third));
        let taken = places.taken();
        assert_eq!((taken.busy, taken.idle.len(), taken.strangers.len()), (0, 0, 0));
    }

    #[test]
    fn clients_do_not_count_as_strangers_nor_strangers_as_clients() {
        let places = places(2, 2, 1);
        let client = enter(&places, "::1");
        let request = client.client();
        assert!(request.admit());
        let strangers: Vec<_> = (0..9).map(|_| enter(&places, "::1")).collect();
        assert!(!closed(&client));
        let newest = strangers.last().unwrap();
        assert!(!closed(newest) && !newest.client().admit());
        drop((client, request));
        assert!(newest.client().admit());
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
