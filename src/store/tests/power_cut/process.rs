//! A simulated process that uses a disk until it has a fault.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::directory::Directory;
use crate::store::tests::failing_storage::{no_space, not_durable};
use crate::store::tests::power_cut::disk::Disk;
use crate::store::tests::power_cut::view::ProcessView;
use crate::{Error, Result};

/// What happens to a process at one of its changing calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Neither this call nor any later one reaches the disk.
    Killed,
    /// The disk is full once. Data that this sync should have made durable is not made durable by any later sync of
    /// this process, because systems report the failure only once.
    NoRoom,
}

#[derive(Debug)]
pub(super) struct Process {
    fault: Fault,
    /// How many calls precede it.
    left: Mutex<Option<usize>>,
    happened: Mutex<Option<String>>,
    /// Data that a failed sync did not make durable. No later sync does.
    given_up: Mutex<BTreeSet<PathBuf>>,
}

impl Process {
    /// A process on that disk with a fault at a call, counted from 0.
    pub(super) fn on(disk: &Arc<Disk>, fault: Fault, at: usize) -> (Arc<dyn Directory>, Arc<Self>) {
        let process = Arc::new(Self {
            fault,
            left: Mutex::new(Some(at)),
            happened: Mutex::default(),
            given_up: Mutex::default(),
        });
        (
            Arc::new(ProcessView::new(
                vec!["root".to_owned()],
                vec![disk.clone()],
                process.clone(),
            )),
            process,
        )
    }

    /// A process without a fault.
    pub(super) fn unharmed(disk: &Arc<Disk>) -> Arc<dyn Directory> {
        Self::on(disk, Fault::Killed, usize::MAX).0
    }

    /// The call at which it had its fault.
    pub(super) fn fault(&self) -> Option<String> {
        self.happened.lock().unwrap().clone()
    }

    pub(super) fn is_dead(&self) -> bool {
        self.fault == Fault::Killed && self.left.lock().unwrap().is_none()
    }

    /// Counts a call. Returns whether it is the one that fails, or follows a kill.
    pub(super) fn fails(&self, call: &str, path: &Path) -> bool {
        let mut left = self.left.lock().unwrap();
        let now = match *left {
            None => return self.fault == Fault::Killed,
            Some(calls) => calls == 0,
        };
        *left = left.and_then(|calls| calls.checked_sub(1));
        if now {
            *self.happened.lock().unwrap() = Some(format!("{call} {}", path.display()));
        }
        now
    }

    pub(super) fn change(&self, call: &str, path: &Path) -> Result<()> {
        match (self.fails(call, path), self.fault) {
            (false, _) => Ok(()),
            (true, Fault::Killed) => Err(killed(path)),
            (true, Fault::NoRoom) => Err(no_space(path)),
        }
    }

    /// A call that makes these durable.
    pub(super) fn settle(&self, call: &str, path: &Path, what: Vec<PathBuf>) -> Result<()> {
        match (self.fails(call, path), self.fault) {
            (false, _) => Ok(()),
            (true, Fault::Killed) => Err(killed(path)),
            (true, Fault::NoRoom) => {
                self.given_up.lock().unwrap().extend(what);
                Err(not_durable(path))
            }
        }
    }

    /// It was written again, so a later sync counts.
    pub(super) fn takes_up(&self, path: &Path) {
        self.given_up.lock().unwrap().remove(path);
    }

    pub(super) fn has_given_up(&self, path: &Path) -> bool {
        self.given_up.lock().unwrap().contains(path)
    }
}

fn killed(path: &Path) -> Error {
    Error::io("be", path, io::Error::other("killed"))
}
