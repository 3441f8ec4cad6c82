//! A parallel map over a list that returns its results in order.

use std::sync::mpsc::sync_channel;
use std::thread;

use crate::error::Result;

/// How many results may wait, which bounds the memory.
const AHEAD: usize = 16;

/// Runs `work` for each item on up to `threads` threads, and passes the results to `take` on this thread, in order. Stops
/// at the first error.
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
    let work = &work;
    thread::scope(|scope| {
        let start = |first| {
            let (send, results) = sync_channel((AHEAD / threads).max(1));
            let own = items.iter().skip(first).step_by(threads);
            // It ends when nobody takes its results any more.
            let run = move || own.map(work).try_for_each(|result| send.send(result));
            thread::Builder::new().spawn_scoped(scope, run).ok().map(|_| results)
        };
        let lanes: Vec<_> = (0..threads).map(start).collect();
        for (item, lane) in items.iter().zip(lanes.iter().cycle()) {
            let result = match lane {
                Some(results) => results.recv(),
                // What no thread could be started for is done here.
                None => Ok(work(item)),
            };
            // A thread that panicked sends nothing; the scope passes its panic on.
            let Ok(result) = result else { break };
            take(item, result?)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

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
