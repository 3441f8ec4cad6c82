//! A parallel map over a list that returns its results in order.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::error::Result;

/// How many results may wait, which bounds the memory.
const AHEAD: usize = 16;

struct WorkQueue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    /// The first item that no thread has taken.
    next: usize,
    /// The first item whose result was not consumed.
    taken: usize,
    done: BTreeMap<usize, thread::Result<Result<T>>>,
}

/// Runs `work` for each item on up to `threads` threads, this one included, and passes the results to `take` on this
/// thread, in order. Stops at the first error.
pub(crate) fn parallel_map_ordered<I: Sync, T: Send>(
    items: &[I],
    threads: usize,
    work: impl Fn(&I) -> Result<T> + Sync,
    mut take: impl FnMut(&I, T) -> Result<()>,
) -> Result<()> {
    let threads = threads.min(items.len());
    if threads <= 1 {
        return items.iter().try_for_each(|item| take(item, work(item)?));
    }
    let queue = WorkQueue {
        state: Mutex::new(State { next: 0, taken: 0, done: BTreeMap::new() }),
        changed: Condvar::new(),
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // If no thread can be started, this one does all the work.
            let _ = thread::Builder::new().spawn_scoped(scope, || queue.help(items, &work));
        }
        let _end = End(&queue);
        queue.run_leader(items, &work, &mut take)
    })
}

/// Releases the helper threads, even after a panic.
struct End<'a, T: Send>(&'a WorkQueue<T>);

impl<T: Send> Drop for End<'_, T> {
    fn drop(&mut self) {
        self.0.hold().next = usize::MAX;
        self.0.changed.notify_all();
    }
}

impl<T: Send> WorkQueue<T> {
    fn hold(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the next item, unless none is left or too many results wait. Returns whether it ran one.
    fn work<I>(
        &self,
        mut state: MutexGuard<'_, State<T>>,
        items: &[I],
        work: &(impl Fn(&I) -> Result<T> + Sync),
    ) -> bool {
        let at = state.next;
        let Some(item) = items.get(at).filter(|_| at < state.taken + AHEAD) else {
            return false;
        };
        state.next += 1;
        drop(state);
        // A panic is passed on to the calling thread.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(item)));
        self.hold().done.insert(at, outcome);
        self.changed.notify_all();
        true
    }

    fn help<I>(&self, items: &[I], work: &(impl Fn(&I) -> Result<T> + Sync)) {
        loop {
            while self.work(self.hold(), items, work) {}
            let state = self.hold();
            if state.next >= items.len() {
                return;
            }
            if state.next >= state.taken + AHEAD {
                drop(self.wait(state));
            }
        }
    }

    fn run_leader<I>(
        &self,
        items: &[I],
        work: &(impl Fn(&I) -> Result<T> + Sync),
        take: &mut impl FnMut(&I, T) -> Result<()>,
    ) -> Result<()> {
        for (at, item) in items.iter().enumerate() {
            let outcome = loop {
                let mut state = self.hold();
                if let Some(outcome) = state.done.remove(&at) {
                    state.taken = at + 1;
                    break outcome;
                }
                if state.next < items.len() && state.next < state.taken + AHEAD {
                    self.work(state, items, work);
                } else {
                    drop(self.wait(state));
                }
            };
            self.changed.notify_all();
            take(item, outcome.unwrap_or_else(|panic| resume_unwind(panic))?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn outcomes_come_in_order_whoever_is_done_first() {
        for threads in [1, 2, 3, 8] {
            let items: Vec<u64> = (0..200).collect();
            let mut taken = Vec::new();
            let work = |item: &u64| {
                thread::sleep(std::time::Duration::from_micros(item * 7919 % 301));
                Ok(item * 2)
            };
            let take = |item: &u64, double| {
                taken.push((*item, double));
                Ok(())
            };
            parallel_map_ordered(&items, threads, work, take).unwrap();
            assert!(taken.into_iter().eq((0..200).map(|item| (item, item * 2))));
        }
        parallel_map_ordered(&[], 4, |_: &u64| Ok(()), |_, ()| Ok(())).unwrap();
    }

    #[test]
    fn an_error_or_a_panic_anywhere_ends_it_and_nobody_waits_for_ever() {
        let items: Vec<u64> = (0..100).collect();
        for bad in [0, 1, 50, 99] {
            let work = |item: &u64| if *item == bad { Err(Error::NoKey) } else { Ok(()) };
            assert!(matches!(
                parallel_map_ordered(&items, 3, work, |_, ()| Ok(())),
                Err(Error::NoKey)
            ));
            let take = |item: &u64, ()| if *item == bad { Err(Error::NoKey) } else { Ok(()) };
            assert!(matches!(parallel_map_ordered(&items, 3, |_| Ok(()), take), Err(Error::NoKey)));
            let panics = catch_unwind(|| {
                let work = |item: &u64| {
                    assert_ne!(*item, bad, "on purpose");
                    Ok(())
                };
                parallel_map_ordered(&items, 3, work, |_, ()| Ok(()))
            });
            assert!(panics.is_err());
        }
    }
}
