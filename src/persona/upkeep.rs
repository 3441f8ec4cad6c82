//! Upkeep of contexts: backups, and removal of expired and deleted ones.

use std::io::ErrorKind;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};

use super::PersonaRegistry;
use crate::directory::fs::FsDirectory;
use crate::error::{Error, PersonaFailure, Result};
use crate::scope::Scope;
use crate::store::file_store::blocking;
use crate::store::write::removal::purge_all;
use crate::store::{ConversationStore, FileConversationStore, Profile};

/// The result of a run of upkeep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MaintenanceReport {
    /// The daily backups that were made: one of each context, and one of the presets.
    pub backups: Vec<PathBuf>,
    /// The number of files that they lack because they could not be read. Older backups are kept then.
    pub unread: usize,
    /// The removed contexts, each with its backup.
    pub removed: Vec<(String, PathBuf)>,
    /// Contexts that were due for removal, but are in use or cannot be backed up completely.
    pub kept: Vec<String>,
}

impl PersonaRegistry {
    /// Makes the daily backups that are not there yet. Removes the contexts that an earlier call found deleted or
    /// expired, long enough ago. Call it at least once a day.
    ///
    /// # Errors
    /// Those of reading the store and writing backups. A context without a backup is not removed.
    pub async fn maintain(&self) -> Result<MaintenanceReport> {
        let root = self.root.clone();
        blocking(move || purge_all(&FsDirectory::new(&root, &[])?)).await?;
        let now = self.clock().now();
        let mut done = MaintenanceReport::default();
        let (made, unread) = self.back_up_daily(&now).await?;
        done.backups = made.iter().map(|name| self.backups.join(name.file_name())).collect();
        done.unread = unread;
        let days = i64::from(self.limits.remove_after_days);
        let grace = SignedDuration::from_hours(24 * days);
        for context in self.list().await?.contexts {
            let (is_over, noted) = (!context.is_open(), context.assigned_persona.over_since);
            // A note from before somebody restored the context does not count.
            match noted.filter(|since| is_over && context.is_over_at(*since)) {
                Some(since) if now.timestamp().duration_since(since) >= grace => {
                    self.remove_in_upkeep(context.id, &mut done).await?;
                }
                None if is_over || noted.is_some() => {
                    let since = is_over.then(|| now.timestamp());
                    match self.note_over(&context.id, since).await {
                        Err(error) if !is_anothers(&error) => return Err(error),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        Ok(done)
    }

    async fn remove_in_upkeep(&self, id: String, done: &mut MaintenanceReport) -> Result<()> {
        match self.remove(&id).await {
            Ok(backup) => done.removed.push((id, backup)),
            Err(Error::Persona(PersonaFailure::NotBackedUp { .. } | PersonaFailure::InUse)) => {
                done.kept.push(id);
            }
            Err(error) if is_anothers(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Notes since when a context has been expired or deleted; `None` removes the note.
    async fn note_over(&self, id: &str, since: Option<Timestamp>) -> Result<()> {
        let note = move |profile: &mut Profile| {
            if let Some(assigned_persona) = &mut profile.assigned_persona {
                assigned_persona.over_since = since;
            }
        };
        self.opened(id).await?.change_profile(Box::new(note)).await?;
        Ok(())
    }

    /// Removes a context permanently, after a sealed backup. Returns the backup's path. Importing it restores the
    /// context.
    ///
    /// # Errors
    /// [`PersonaFailure::NotBackedUp`] and [`PersonaFailure::InUse`]; nothing is removed then. Those of
    /// [`get`](Self::get).
    pub async fn remove(&self, id: &str) -> Result<PathBuf> {
        self.delete(id).await?;
        // A context restored from the backup gets the full time again.
        self.note_over(id, None).await?;
        let store = self.opened(id).await?;
        // Otherwise making the backup would do it, which would be a change.
        store.cleanup().await?;
        let before = store.conversation_state().await?;
        let name = self.back_up(id, &self.clock().now()).await?;
        if !store.remove(before.last_seq, before.profile.rev).await? {
            return Err(PersonaFailure::InUse.into());
        }
        self.held().remove(id);
        tracing::info!("removed a context after backing it up");
        Ok(self.backups.join(name))
    }

    pub(super) async fn default_store(&self) -> Result<FileConversationStore> {
        self.of_scope(&Scope::Default).await
    }
}

/// Whether another process removed the context at the same time.
pub(super) fn is_anothers(error: &Error) -> bool {
    match error {
        Error::FolderReplaced { .. }
        | Error::Persona(PersonaFailure::NoSuchConversation { .. }) => true,
        // A backup of that name exists, or the conversation's folder is gone.
        Error::Io { source, .. } => {
            matches!(source.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound)
        }
        _ => false,
    }
}
