//! A remote with faults, chosen by a seed: the same seed and the same operations give the same faults

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::{Action, ErrorKind, RemoteError};
use crate::name;
use crate::remote::{Remote, Result};

/// How errors name this remote.
const PLACE: &str = "faulty:";

/// How often each fault occurs, in thousandths of the operations. At most one of them befalls an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// The request does not arrive.
    pub lost_requests: u16,
    /// The request is carried out, but the answer does not arrive.
    pub lost_replies: u16,
    /// A `put` or `delete` fails and is carried out later, after some of those that follow, in any order.
    pub late: u16,
    /// A `put` or `delete` is carried out at once, and again later.
    pub doubled: u16,
    /// A `put` fails and leaves a truncated object; a `get` returns one.
    pub truncated: u16,
}

impl Faults {
    /// Each fault in `thousandths` of the operations.
    #[must_use]
    pub fn all(thousandths: u16) -> Self {
        Self {
            lost_requests: thousandths,
            lost_replies: thousandths,
            late: thousandths,
            doubled: thousandths,
            truncated: thousandths,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    LostRequest,
    LostReply,
    Late,
    Doubled,
    Truncated,
}

#[derive(Debug)]
enum Change {
    Put(String, Bytes),
    Delete(String),
}

/// A remote that has faults.
#[derive(Debug)]
pub struct Faulty<R> {
    remote: R,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    random: Random,
    faults: Faults,
    waiting: VecDeque<Change>,
}

impl<R: Remote> Faulty<R> {
    /// Adds faults to a remote.
    pub fn new(remote: R, seed: u64, faults: Faults) -> Self {
        let state = State { random: Random(seed), faults, waiting: VecDeque::new() };
        Self { remote, state: Mutex::new(state) }
    }

    /// Changes how often faults occur. What is late stays so.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// The remote below, without faults.
    pub fn inner(&self) -> &R {
        &self.remote
    }

    /// Carries out what is late, in any order.
    ///
    /// # Errors
    /// Those of the remote below.
    pub async fn settle(&self) -> Result<()> {
        while let Some(change) = self.take_late() {
            self.carry_out(change).await?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves a usable state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_late(&self) -> Option<Change> {
        let mut state = self.lock();
        let count = state.waiting.len();
        let at = state.random.below(count);
        state.waiting.swap_remove_back(at)
    }

    async fn carry_out(&self, change: Change) -> Result<()> {
        match change {
            Change::Put(name, bytes) => self.remote.put(&name, bytes).await,
            Change::Delete(name) => self.remote.delete(&name).await,
        }
    }

    /// Now and then something late arrives; then the fault of this operation is chosen.
    async fn choose(&self) -> Result<Fault> {
        let arrives = self.lock().random.below(4) == 0;
        if let Some(change) = arrives.then(|| self.take_late()).flatten() {
            self.carry_out(change).await?;
        }
        Ok(self.lock().choose())
    }

    async fn change(&self, action: Action, change: impl Fn() -> Change, name: &str) -> Result<()> {
        match self.choose().await? {
            Fault::None => self.carry_out(change()).await,
            Fault::LostRequest => Err(lost(action, name)),
            Fault::LostReply => {
                self.carry_out(change()).await?;
                Err(lost(action, name))
            }
            Fault::Late => {
                self.lock().waiting.push_back(change());
                Err(lost(action, name))
            }
            Fault::Doubled => {
                self.lock().waiting.push_back(change());
                self.carry_out(change()).await
            }
            Fault::Truncated => {
                if let Change::Put(name, bytes) = change() {
                    let bytes = self.truncate(&bytes);
                    self.carry_out(Change::Put(name, bytes)).await?;
                }
                Err(lost(action, name))
            }
        }
    }

    fn truncate(&self, bytes: &Bytes) -> Bytes {
        bytes.slice(..self.lock().random.below(bytes.len()))
    }
}

impl State {
    fn choose(&mut self) -> Fault {
        let faults = self.faults;
        let mut drawn = u16::try_from(self.random.below(1000)).unwrap_or_default();
        for (often, fault) in [
            (faults.lost_requests, Fault::LostRequest),
            (faults.lost_replies, Fault::LostReply),
            (faults.late, Fault::Late),
            (faults.doubled, Fault::Doubled),
            (faults.truncated, Fault::Truncated),
        ] {
            match drawn.checked_sub(often) {
                Some(rest) => drawn = rest,
                None => return fault,
            }
        }
        Fault::None
    }
}

fn lost(action: Action, name: &str) -> RemoteError {
    RemoteError::new(ErrorKind::Unreachable, action, name::place(PLACE, name), "no answer came")
}

/// The generator SplitMix64: small, and the same everywhere.
#[derive(Debug)]
struct Random(u64);

impl Random {
    /// A number below `count`, or 0.
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let count = count.max(1) as u64;
        usize::try_from(mixed % count).unwrap_or_default()
    }
}

#[async_trait]
impl<R: Remote> Remote for Faulty<R> {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<()> {
        let change = || Change::Put(name.to_owned(), bytes.clone());
        self.change(Action::Put, change, name).await
    }

    async fn get(&self, name: &str) -> Result<Option<Bytes>> {
        match self.choose().await? {
            Fault::None | Fault::Doubled => self.remote.get(name).await,
            Fault::Truncated => {
                let found = self.remote.get(name).await?;
                Ok(found.map(|bytes| self.truncate(&bytes)))
            }
            Fault::LostRequest | Fault::LostReply | Fault::Late => Err(lost(Action::Get, name)),
        }
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>> {
        match self.choose().await? {
            Fault::None | Fault::Doubled | Fault::Truncated => self.remote.list(folder).await,
            Fault::LostRequest | Fault::LostReply | Fault::Late => Err(lost(Action::List, folder)),
        }
    }

    async fn delete(&self, name: &str) -> Result<()> {
        self.change(Action::Delete, || Change::Delete(name.to_owned()), name).await
    }
}
