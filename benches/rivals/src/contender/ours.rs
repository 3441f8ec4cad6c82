//! Sottovoce through its public API, called as a host with a single-threaded runtime calls it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use sottovoce::{ChatMessage, ConversationStore, FileConversationStore};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinError, spawn_blocking};

use super::{Contender, Outcome, Words};
use crate::support::options;

thread_local! {
    /// A host has one before it opens a store.
    static RUNTIME: Rc<Runtime> = Rc::new(warm_runtime());
}

pub(super) struct Ours {
    runtime: Rc<Runtime>,
    store: FileConversationStore,
    folder: PathBuf,
}

#[expect(clippy::expect_used, reason = "nothing can be measured without")]
fn warm_runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(cross()).expect("a blocking thread");
    runtime
}

async fn cross() -> Result<(), JoinError> {
    spawn_blocking(|| ()).await
}

impl Ours {
    pub(super) fn open(folder: &Path) -> Outcome<Self> {
        let runtime = RUNTIME.with(Rc::clone);
        let store = runtime.block_on(options().open(folder))?;
        Ok(Self { runtime, store, folder: folder.into() })
    }
}

impl Contender for Ours {
    fn append(&mut self, message: ChatMessage) -> Outcome<()> {
        self.runtime.block_on(self.store.append_message(message))?;
        Ok(())
    }

    fn append_all(&mut self, messages: Vec<ChatMessage>) -> Outcome<()> {
        self.runtime.block_on(self.store.append_all(messages))?;
        Ok(())
    }

    fn tail(&mut self, n: usize) -> Outcome<Words> {
        Ok(Words::Shared(self.runtime.block_on(self.store.read_tail(n))?))
    }

    fn tails(&mut self, n: usize, times: usize) -> Outcome<Words> {
        self.runtime.block_on(async {
            for _ in 1..times {
                std::hint::black_box(self.store.read_tail(n).await?);
            }
            Ok(Words::Shared(self.store.read_tail(n).await?))
        })
    }

    /// Opening takes a thousandth of the time.
    fn all(&mut self, threads: usize) -> Outcome<Words> {
        let scan = async {
            let store = options().threads(threads).open(&self.folder).await?;
            store.read_seqs(1..=u64::MAX).await
        };
        Ok(Words::Shared(self.runtime.block_on(scan)?))
    }

    fn between(&mut self, times: &Range<Timestamp>) -> Outcome<Words> {
        Ok(Words::Shared(self.runtime.block_on(self.store.read_times(times.clone()))?))
    }
}

/// The cost of handing no work to a blocking thread and waiting for its end.
pub(crate) fn crossing() -> Outcome<Duration> {
    let runtime = RUNTIME.with(Rc::clone);
    let mut times = Vec::new();
    for _ in 0..1_001 {
        let started = Instant::now();
        runtime.block_on(cross())?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}
