//! Places for connections. If all are taken, a new one closes the one that has been idle longest, so that silent
//! connections never keep a client out

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio_util::sync::CancellationToken;

use crate::body::Body;

/// Limits of connections.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// The most connections. One more closes the one that has been idle longest.
    pub connections: usize,
    /// How long the head of a request may take, how long TLS may take, and how long a connection may be silent between two
    /// requests.
    pub head: Duration,
    /// How long a client may leave an answer unread.
    pub unread: Duration,
}

/// The open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    most: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    /// Those without an admitted request. The first has been idle longest.
    idle: BTreeMap<u64, CancellationToken>,
    /// How many have an admitted request.
    busy: usize,
}

/// The place of one connection. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct Connection {
    places: Arc<Connections>,
    closed: CancellationToken,
    /// Its key among the idle ones.
    idle: Mutex<Option<u64>>,
}

/// A request in progress on a connection. Dropping it makes the connection idle.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Connection>);

impl Connections {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// Takes a place. Another idle connection may be closed for it, or this one, if no other is idle.
    pub(crate) fn enter(self: &Arc<Self>) -> Connection {
        let closed = CancellationToken::new();
        let idle = self.rest(&closed);
        let mut taken = self.taken();
        if taken.idle.len() + taken.busy > self.most
            && let Some((_, oldest)) = taken.idle.pop_first()
        {
            oldest.cancel();
        }
        drop(taken);
        Connection { places: Arc::clone(self), closed, idle: Mutex::new(Some(idle)) }
    }

    fn rest(&self, closed: &CancellationToken) -> u64 {
        let mut taken = self.taken();
        taken.next += 1;
        let number = taken.next;
        taken.idle.insert(number, closed.clone());
        number
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Cancelled when the connection must close.
    pub(crate) fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        Busy(Arc::clone(self))
    }

    fn idle(&self) -> MutexGuard<'_, Option<u64>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Busy {
    /// Takes the connection from the idle ones. Returns false if it is being closed.
    pub(crate) fn admit(&self) -> bool {
        let mut idle = self.0.idle();
        let mut taken = self.0.places.taken();
        let is_open = idle.take().is_some_and(|number| taken.idle.remove(&number).is_some());
        taken.busy += usize::from(is_open);
        is_open
    }

    /// The body of the answer, which keeps the connection busy to its end.
    pub(crate) fn with(self: Arc<Self>, body: Body) -> BusyBody {
        BusyBody { body, _busy: self }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut idle = self.0.idle();
        if idle.is_none() && !self.0.closed.is_cancelled() {
            let mut taken = self.0.places.taken();
            taken.busy = taken.busy.saturating_sub(1);
            drop(taken);
            *idle = Some(self.0.places.rest(&self.0.closed));
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let number = self.idle().take();
        if let Some(number) = number {
            self.places.taken().idle.remove(&number);
        }
    }
}

/// The body of an answer on a connection.
pub(crate) struct BusyBody {
    body: Body,
    _busy: Arc<Busy>,
}

impl http_body::Body for BusyBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_that_was_idle_longest_makes_room() {
        let places = Connections::new(2);
        let all: Vec<_> = (0..3).map(|_| Arc::new(places.enter())).collect();
        let closed = |at: usize| all[at].closed().is_cancelled();
        assert_eq!([closed(0), closed(1), closed(2)], [true, false, false]);
        let busy = all[1].busy();
        assert!(busy.admit());
        assert!(!all[0].busy().admit(), "it is being closed");
        let another = places.enter();
        assert_eq!([closed(1), closed(2)], [false, true], "one with a request stays");
        drop(another);
        drop(busy);
        let (_one, _two) = (places.enter(), places.enter());
        assert!(closed(1), "it is idle again");
        drop(all);
        assert_eq!(places.taken().busy, 0);
    }

    #[test]
    fn if_all_have_requests_a_new_one_is_closed() {
        let places = Connections::new(1);
        let first = Arc::new(places.enter());
        let busy = first.busy();
        assert!(busy.admit());
        assert!(places.enter().closed().is_cancelled());
        assert!(!first.closed().is_cancelled());
    }
}
