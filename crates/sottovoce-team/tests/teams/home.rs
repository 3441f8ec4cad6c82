//! A store in a folder, as a process opens it

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sottovoce::{
    ConversationStore, EncryptionKey, FileConversationStore, ManualClock, Result, Scope,
    StoreOptions,
};
use sottovoce_sync::Conversations;

pub(crate) struct Home {
    pub(crate) folder: PathBuf,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) open: Mutex<HashMap<Scope, FileConversationStore>>,
}

#[async_trait]
impl Conversations for Home {
    async fn scopes(&self) -> Result<Vec<Scope>> {
        match self.folder.exists() {
            true => sottovoce::admin::scopes(&self.folder),
            false => Ok(Vec::new()),
        }
    }

    async fn open(&self, scope: &Scope) -> Result<FileConversationStore> {
        let open = self.open.lock().unwrap().get(scope).cloned();
        match open {
            // The conversation may have been forgotten completely and begun again.
            Some(open) if open.profile().await.is_ok() => return Ok(open),
            _ => {}
        }
        let key = EncryptionKey::from_secret("a long secret that only this house knows")?;
        let options = StoreOptions::new(key).scope(scope.clone());
        let store = options.clock(Arc::clone(&self.clock) as _).open(&self.folder).await?;
        self.open.lock().unwrap().insert(scope.clone(), store.clone());
        Ok(store)
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Home").finish_non_exhaustive()
    }
}

/// Replaces a folder by a copy of another.
pub(crate) fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}
