//! Reading: from memory while that is current, else from the folder.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::store::Reading;
use crate::store::folder::{Folder, Opened};
use crate::store::name::RecordName;
use crate::store::tail::{ATTEMPTS, Tail, restless};

/// A folder and what is remembered of its newest end.
pub(crate) struct Reader {
    pub(crate) folder: Folder,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    tail: Option<Tail>,
    /// Counts installations, so that a slow reader does not put back what it read before someone else's.
    version: u64,
}

impl Reader {
    pub(crate) fn new(folder: Folder) -> Self {
        Self { folder, cache: Mutex::default() }
    }

    /// Whether the folder can be read with the keys at hand.
    pub(crate) fn check(&self) -> Result<()> {
        self.folder.vault()?;
        self.folder.head()?;
        Ok(())
    }

    /// What is remembered, current or not.
    pub(crate) fn known(&self) -> Option<Tail> {
        self.cache().tail.clone()
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn install(&self, tail: Option<Tail>) {
        let mut cache = self.cache();
        cache.version += 1;
        cache.tail = tail;
    }

    /// The newest `n` from memory, if memory is current.
    pub(crate) fn remembered(&self, n: usize) -> Result<Option<Reading>> {
        let cache = self.cache();
        Ok(match &cache.tail {
            Some(tail) if tail.is_current(&self.folder)? => tail.newest(n),
            _ => None,
        })
    }

    pub(crate) fn read_tail(&self, n: usize) -> Result<Reading> {
        let (known, version) = {
            let cache = self.cache();
            (cache.tail.clone(), cache.version)
        };
        let tail = Tail::load(&self.folder, n, known.as_ref())?;
        let reading = tail.newest(n).unwrap_or_default();
        tracing::debug!(messages = reading.messages.len(), "read the newest end");
        for finding in &reading.skipped {
            tracing::warn!(kind = finding.kind.code(), file = finding.file, "passed over");
        }
        let mut cache = self.cache();
        // Of two readers at once, one may have seen a message that the head does not tell of yet: what the other
        // remembers must not hide it again.
        let is_newer = cache.tail.as_ref().is_some_and(|known| known.last_seq < tail.last_seq);
        if cache.version == version || is_newer {
            cache.version += 1;
            cache.tail = Some(tail);
        }
        Ok(reading)
    }

    /// Every message whose name is wanted, in conversation order.
    pub(crate) fn read_if(&self, wanted: &dyn Fn(RecordName) -> bool) -> Result<Reading> {
        for _ in 0..ATTEMPTS {
            let tail = Tail::load(&self.folder, 0, None)?;
            if let Some(reading) = self.read_once(&tail, wanted)? {
                return Ok(reading);
            }
        }
        Err(restless(&self.folder))
    }

    /// `None` where a file vanished between being listed and being read.
    fn read_once(
        &self,
        tail: &Tail,
        wanted: &dyn Fn(RecordName) -> bool,
    ) -> Result<Option<Reading>> {
        let mut reading = tail.newest(0).unwrap_or_default();
        let mut names = self.folder.list()?.names;
        names.retain(|&name| !name.is_forget() && !tail.erased.contains(name.seq) && wanted(name));
        names.sort_unstable();
        for name in names {
            match self.folder.open(name)? {
                // It was appended since the tail was read.
                Opened::Message(_) if name.seq > tail.last_seq => {}
                Opened::Message(message) => reading.messages.push(message),
                Opened::Skipped(kind) => {
                    let finding = kind.in_file(name.to_string());
                    if !reading.skipped.contains(&finding) {
                        reading.skipped.push(finding);
                    }
                }
                Opened::Forget(_) => {}
                Opened::Gone => return Ok(None),
            }
        }
        Ok(Some(reading))
    }
}
