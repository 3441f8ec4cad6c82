//! A remote in memory

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use crate::error::Action;
use crate::name::{self, Names};
use crate::remote::{Remote, Result};

/// How errors name this remote.
const PLACE: &str = "memory:";

/// A remote in memory. Share it in an `Arc`.
#[derive(Debug, Default)]
pub struct MemoryRemote {
    objects: Mutex<BTreeMap<String, Bytes>>,
}

impl MemoryRemote {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A copy of everything, to be restored later.
    #[must_use]
    pub fn objects(&self) -> BTreeMap<String, Bytes> {
        self.lock().clone()
    }

    /// Replaces everything, as somebody does who restores a server from a backup or wipes it.
    pub fn restore(&self, objects: BTreeMap<String, Bytes>) {
        *self.lock() = objects;
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
        // No operation leaves the map half changed.
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Remote for MemoryRemote {
    async fn put(&self, name: &str, bytes: Bytes) -> Result<()> {
        name::check(Action::Put, PLACE, name)?;
        name::check_size(Action::Put, &name::place(PLACE, name), bytes.len() as u64)?;
        self.lock().insert(name.to_owned(), bytes);
        Ok(())
    }

    async fn get(&self, name: &str) -> Result<Option<Bytes>> {
        name::check(Action::Get, PLACE, name)?;
        Ok(self.lock().get(name).cloned())
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>> {
        name::check(Action::List, PLACE, folder)?;
        let place = name::place(PLACE, folder);
        let mut names = Names::new(&place);
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        for name in self.lock().keys() {
            let Some(rest) = name.strip_prefix(&prefix) else { continue };
            let (part, is_folder) =
                rest.split_once('/').map_or((rest, false), |(part, _)| (part, true));
            names.add(part, is_folder)?;
        }
        Ok(names.finish())
    }

    async fn delete(&self, name: &str) -> Result<()> {
        name::check(Action::Delete, PLACE, name)?;
        self.lock().remove(name);
        Ok(())
    }
}
