//! A store in a folder, as a process opens it

use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sottovoce::admin::Rekey;
use sottovoce::{
    ConversationStore, EncryptionKey, FileConversationStore, ManualClock, Result, Scope,
    StoreOptions,
};
use sottovoce_sync::Conversations;
use tempfile::TempDir;

/// The secret of every store, until it is changed.
pub(crate) const SECRET: &str = "a long secret that only this house knows";
/// The secret after it was changed.
pub(crate) const NEXT: &str = "another long secret that this house knows";

pub(crate) struct Home {
    pub(crate) folder: PathBuf,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) secret: Mutex<&'static str>,
    open: Mutex<HashMap<Scope, FileConversationStore>>,
}

impl Home {
    pub(crate) fn new(folder: PathBuf, clock: Arc<ManualClock>) -> Self {
        Self { folder, clock, secret: Mutex::new(SECRET), open: Mutex::default() }
    }

    pub(crate) fn secret(&self) -> &'static str {
        *self.secret.lock().unwrap()
    }

    /// Changes the key to the other one of two.
    pub(crate) async fn rekey(&self) {
        let next = if self.secret() == SECRET { NEXT } else { SECRET };
        let [from, to] =
            [self.secret(), next].map(|secret| EncryptionKey::from_secret(secret).unwrap());
        let rekey = Rekey::new(from, to).lock_timeout(Duration::from_secs(60));
        let report = rekey.run(&self.folder, |_| ControlFlow::Continue(())).await.unwrap();
        assert!(report.left.is_empty(), "{:?}", report.left);
        self.close();
        *self.secret.lock().unwrap() = next;
    }

    /// Closes the stores, as the end of the process does.
    pub(crate) fn close(&self) {
        self.open.lock().unwrap().clear();
    }

    pub(crate) async fn store(&self, scope: &Scope) -> FileConversationStore {
        self.open(scope).await.unwrap()
    }
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
        let key = EncryptionKey::from_secret(self.secret())?;
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
    copy_into(from, to);
}

fn copy_into(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_into(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// A folder that is deleted when it is dropped.
pub(crate) fn new_folder() -> TempDir {
    // In memory, where the system has such a folder: durability is not what is tried here.
    let memory = PathBuf::from("/dev/shm");
    match memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}
