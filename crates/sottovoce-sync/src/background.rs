//! Syncs by itself while a host runs: soon after something was said, seldom while nothing happens

use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use sottovoce::Scope;
use sottovoce::exchange::Position;
use sottovoce_remote::{ErrorKind, part_of};
use tokio::time::Instant;

use crate::error::{Failure, SyncError, SyncResult};
use crate::report::SyncReport;
use crate::syncer::Syncer;

/// How often it looks whether something was said here, if looking takes no longer than a hundredth of that.
const LOOK: Duration = Duration::from_secs(5);

/// The share of the time that looking may take.
const LOOKING: u32 = 100;

/// The longest time between two syncs while nothing happens.
const LONGEST_IDLE: Duration = Duration::from_secs(10 * 60);

/// The longest time between two attempts while syncing fails.
const LONGEST_FAILING: Duration = Duration::from_secs(15 * 60);

/// Every how manieth sync also checks what this device has published, if they follow each other closely.
const FULL: u64 = 16;

/// Syncs a store again and again.
///
/// The first sync is at once. Each further one follows the interval after one that brought something, and later, up to ten
/// minutes, while nothing happens; a few seconds after something was said here; and after a failure ever later, up to a
/// quarter of an hour. Each sixteenth, and each of those ten minutes apart, is a full one. While the store does not sync, it waits until it does.
/// It logs a failure once until the next success, and a failure of another kind again, without words.
#[derive(Debug)]
pub struct Background<W = Syncer> {
    work: Arc<W>,
    interval: Duration,
    handle: BackgroundHandle,
}

/// Tells how a [`Background`] fares.
#[derive(Debug, Clone, Default)]
pub struct BackgroundHandle(Arc<Mutex<BackgroundStatus>>);

/// How syncing fares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackgroundStatus {
    /// When a sync last succeeded.
    pub succeeded_at: Option<Timestamp>,
    /// How many syncs succeeded.
    pub succeeded: u64,
    /// How many syncs failed. One that found the store not syncing, or another process at it, is none.
    pub failed: u64,
    /// Messages of other devices that were stored here.
    pub received: u64,
    /// Messages of this device that were published.
    pub published: u64,
}

impl BackgroundHandle {
    /// How syncing has fared so far.
    pub fn status(&self) -> BackgroundStatus {
        self.lock().clone()
    }

    fn count(&self, result: &Result<SyncReport, impl Failure>, now: Timestamp) {
        let mut status = self.lock();
        match result {
            Ok(report) => {
                status.succeeded_at = Some(now);
                status.succeeded += 1;
                status.received += report.received as u64;
                status.published += report.published as u64;
            }
            Err(error) => status.failed += u64::from(!error.is_idle()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BackgroundStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W: Repeated> Background<W> {
    /// Syncs that follow each other after this interval while something happens. At least a second.
    pub fn new(work: Arc<W>, interval: Duration) -> Self {
        let interval = interval.max(Duration::from_secs(1));
        Self { work, interval, handle: BackgroundHandle::default() }
    }

    /// Tells how it fares.
    pub fn handle(&self) -> BackgroundHandle {
        self.handle.clone()
    }

    /// Syncs until it is dropped, which may be at any moment. Tells of each sync.
    pub async fn run(&self, mut told: impl FnMut(Result<SyncReport, W::Error>)) {
        repeat(&*self.work, self.interval, |result| {
            self.handle.count(&result, self.work.now());
            told(result);
        })
        .await;
    }

    /// Publishes what was said since the last sync, if that takes no longer than this. For a host that ends: what does not
    /// get out now goes out when it runs again.
    pub async fn finish(&self, longest: Duration) {
        let finishing = async {
            if self.work.is_unpublished().await.unwrap_or(false) {
                self.handle.count(&self.work.sync(false).await, self.work.now());
            }
        };
        // A sync may be interrupted anywhere.
        drop(tokio::time::timeout(longest, finishing).await);
    }
}

/// What a [`Background`] repeats.
#[async_trait]
pub trait Repeated: Send + Sync {
    /// Why it fails.
    type Error: Failure;

    /// Exchanges what is new; if it is a full one, thoroughly. Fails with an idle failure if there is nothing to do.
    async fn sync(&self, is_full: bool) -> Result<SyncReport, Self::Error>;

    /// Where each shared conversation is. While that is equal, nothing has changed here.
    async fn positions(&self) -> Result<BTreeMap<Scope, Position>, Self::Error>;

    /// Whether something here was not published yet.
    async fn is_unpublished(&self) -> Result<bool, Self::Error>;

    /// Ends once the other side has something new, if it can tell.
    async fn news(&self) {
        std::future::pending().await
    }

    /// The time by the host's clock.
    fn now(&self) -> Timestamp;
}

#[async_trait]
impl Repeated for Syncer {
    type Error = SyncError;

    async fn sync(&self, is_full: bool) -> SyncResult<SyncReport> {
        // A store that does not sync is not written to.
        if self.address().await?.is_none() {
            return Err(SyncError::NotSetUp);
        }
        match is_full {
            true => Self::sync(self, |_| {}).await,
            false => self.poll().await,
        }
    }

    async fn positions(&self) -> SyncResult<BTreeMap<Scope, Position>> {
        Self::positions(self).await
    }

    async fn is_unpublished(&self) -> SyncResult<bool> {
        Ok(self.status().await?.unpublished > 0)
    }

    fn now(&self) -> Timestamp {
        Self::now(self)
    }
}

async fn repeat<W: Repeated>(
    work: &W,
    interval: Duration,
    mut told: impl FnMut(Result<SyncReport, W::Error>),
) {
    let mut pace = Pace { interval, idle: interval, done: 0, failed: 0 };
    let mut failing = None;
    loop {
        // Before the sync, so that what is said while it runs shows as a difference.
        let before = work.positions().await.ok();
        let result = work.sync(pace.is_full()).await;
        log(&result, &mut failing);
        let pause = pace.after(&result);
        let before = before.filter(|_| result.is_ok());
        told(result);
        wait(work, pause, before).await;
    }
}

/// Waits until the next sync is due.
async fn wait(work: &impl Repeated, pause: Duration, before: Option<BTreeMap<Scope, Position>>) {
    let due = Instant::now() + pause;
    let mut look = LOOK;
    // After a failure nobody is pressed for news.
    let news = async {
        match before {
            Some(_) => work.news().await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(news);
    loop {
        let left = due.saturating_duration_since(Instant::now());
        tokio::select! {
            () = &mut news => return,
            () = tokio::time::sleep(look.min(left)) => {}
        }
        let started = Instant::now();
        if started >= due {
            return;
        }
        let Some(before) = &before else { continue };
        if work.positions().await.is_ok_and(|now| now != *before) {
            return;
        }
        look = LOOK.max(started.elapsed() * LOOKING);
    }
}

/// When the next sync is due.
struct Pace {
    interval: Duration,
    /// The next pause if nothing happens.
    idle: Duration,
    done: u64,
    /// How many attempts have failed since the last success.
    failed: u32,
}

impl Pace {
    fn is_full(&self) -> bool {
        self.done.is_multiple_of(FULL) || self.idle >= LONGEST_IDLE
    }

    fn after(&mut self, result: &Result<SyncReport, impl Failure>) -> Duration {
        let report = match result {
            Ok(report) => report,
            Err(error) if error.is_idle() => return self.interval,
            Err(error) => {
                let doubled = self.interval.saturating_mul(1 << self.failed.min(16));
                let longest = doubled.min(LONGEST_FAILING.max(self.interval));
                self.failed += 1;
                return match error.is_transient() {
                    // Many devices may have lost the same server.
                    true => longest / 2 + part_of(longest / 2),
                    false => longest,
                };
            }
        };
        self.done += 1;
        self.failed = 0;
        let has_happened = report.received + report.removed + report.artifacts > 0
            || report.published + report.forgotten > 0;
        if has_happened {
            self.idle = self.interval;
        }
        let pause = self.idle;
        self.idle = (self.idle * 2).min(LONGEST_IDLE.max(self.interval));
        pause
    }
}

/// The kind of a failure, of which one is logged until a sync succeeds.
type Kind<E> = (Discriminant<E>, Option<ErrorKind>);

fn log<E: Failure>(result: &Result<SyncReport, E>, failing: &mut Option<Kind<E>>) {
    match result {
        Ok(report) => {
            if failing.take().is_some() {
                tracing::warn!("syncing works again");
            }
            for problem in &report.problems {
                tracing::debug!(%problem, "something at the remote cannot be used");
            }
        }
        // The store is not to sync, or another process syncs it.
        Err(error) if error.is_idle() => {}
        Err(error) => {
            let kind = Some((discriminant(error), error.of_remote()));
            if *failing == kind {
                tracing::debug!(%error, "syncing fails still");
            } else {
                tracing::warn!(%error, "could not sync; trying again later");
                *failing = kind;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sottovoce_remote::{Action, RemoteError};

    /// Notes when it is asked for a sync.
    struct Fake {
        started: Instant,
        /// Seconds since the start, and whether it was a full one.
        syncs: Mutex<Vec<(u64, bool)>>,
        said: Mutex<u64>,
        fails: Mutex<Option<fn() -> SyncError>>,
    }

    #[async_trait]
    impl Repeated for Fake {
        type Error = SyncError;

        async fn sync(&self, is_full: bool) -> SyncResult<SyncReport> {
            self.syncs.lock().unwrap().push((self.started.elapsed().as_secs(), is_full));
            match *self.fails.lock().unwrap() {
                Some(error) => Err(error()),
                None => Ok(SyncReport::default()),
            }
        }

        async fn positions(&self) -> SyncResult<BTreeMap<Scope, Position>> {
            let position = Position { last_seq: *self.said.lock().unwrap(), ..Position::default() };
            Ok(BTreeMap::from([(Scope::Default, position)]))
        }

        async fn is_unpublished(&self) -> SyncResult<bool> {
            Ok(false)
        }

        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
    }

    impl Fake {
        fn new() -> Self {
            let (syncs, said, fails) = Default::default();
            Self { started: Instant::now(), syncs, said, fails }
        }

        /// The times of the syncs since the last call.
        fn times(&self) -> Vec<u64> {
            self.syncs.lock().unwrap().drain(..).map(|(at, _)| at).collect()
        }
    }

    fn unreachable() -> SyncError {
        RemoteError::new(ErrorKind::Unreachable, Action::List, "s3://b", "no answer").into()
    }

    const MINUTE: Duration = Duration::from_secs(60);

    /// Runs while time passes.
    async fn during(fake: &Fake, time: Duration, act: impl Future<Output = ()>) {
        let both = async { tokio::join!(repeat(fake, MINUTE, |_| {}), act) };
        drop(tokio::time::timeout(time, both).await);
    }

    #[tokio::test(start_paused = true)]
    async fn while_nothing_happens_it_asks_ever_more_seldom_and_then_looks_at_everything() {
        let fake = Fake::new();
        during(&fake, MINUTE * 60 * 4, async {}).await;
        let syncs = fake.syncs.lock().unwrap().clone();
        let times: Vec<u64> = syncs.iter().take(6).map(|(at, _)| at / 60).collect();
        assert_eq!(times, [0, 1, 3, 7, 15, 25]);
        let full: Vec<usize> = (0..syncs.len()).filter(|at| syncs[*at].1).collect();
        assert_eq!(full, [&[0], &(4..syncs.len()).collect::<Vec<_>>()[..]].concat());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_said_is_published_within_seconds() {
        let fake = Fake::new();
        during(&fake, MINUTE * 30, async {
            tokio::time::sleep(MINUTE * 20).await;
            *fake.said.lock().unwrap() = 1;
        })
        .await;
        let since = MINUTE.as_secs() * 20;
        assert!(fake.times().iter().any(|at| (since..=since + 5).contains(at)));
    }

    #[tokio::test(start_paused = true)]
    async fn after_failures_it_waits_ever_longer() {
        let fake = Fake::new();
        *fake.fails.lock().unwrap() = Some(unreachable);
        during(&fake, MINUTE * 120, async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            // Words that were said must not make a device press a server that is down.
            *fake.said.lock().unwrap() = 1;
        })
        .await;
        let times = fake.times();
        let pauses: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!((29..=61).contains(&pauses[0]), "{pauses:?}");
        assert!(pauses[5..].iter().all(|pause| (449..=901).contains(pause)), "{pauses:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_does_not_sync_yet_is_looked_at_once_a_minute_and_is_no_failure() {
        let fake = Fake::new();
        *fake.fails.lock().unwrap() = Some(|| SyncError::NotSetUp);
        during(&fake, MINUTE * 19 / 2, async {}).await;
        assert_eq!(fake.times().len(), 10);
        let handle = BackgroundHandle::default();
        handle.count(&Err(SyncError::NotSetUp), Timestamp::UNIX_EPOCH);
        handle.count(&Err(SyncError::Busy), Timestamp::UNIX_EPOCH);
        assert_eq!(handle.status(), BackgroundStatus::default());
        handle.count(&Err(unreachable()), Timestamp::UNIX_EPOCH);
        assert_eq!(handle.status().failed, 1);
    }

    #[test]
    fn a_failure_is_logged_once_until_a_success_and_another_kind_of_failure_again() {
        let mut failing = None;
        log(&Err(unreachable()), &mut failing);
        let first = failing;
        log(&Err(unreachable()), &mut failing);
        assert!(failing == first && first.is_some());
        log(&Err(SyncError::Closed), &mut failing);
        assert!(failing != first);
        log(&Ok(SyncReport::default()), &mut failing);
        assert!(failing.is_none());
    }
}
