//! Sealed backups of contexts: one a day of all, and one of each that is removed.

use std::path::Path;

use jiff::Zoned;

use super::ContextRegistry;
use crate::blob::fs::FsBlobs;
use crate::blob::{Blobs, EntryKind};
use crate::error::{ContextFailure, Result};
use crate::export::{ExportRange, Exporter};
use crate::scope::Scope;
use crate::store::FileConversationStore;
use crate::store::file::blocking;

/// How backups' names end.
const ENDING: &str = ".sottovoce";
const DAILY: &str = "daily-";
const REMOVED: &str = "removed-";
/// How many backups of removed contexts are kept.
const KEPT: usize = 100;

impl ContextRegistry {
    /// Backs up all contexts and presets, unless that was done today. The file's name, and how many files could not be
    /// read; `None` where nothing had to be done.
    pub(super) async fn back_up_daily(&self, now: &Zoned) -> Result<Option<(String, usize)>> {
        let keep = self.0.limits.daily_backups;
        if keep == 0 {
            return Ok(None);
        }
        let name = format!("{DAILY}{}{ENDING}", now.date());
        if self.names(DAILY).await?.contains(&name) {
            return Ok(None);
        }
        let contexts = self.list().await?.contexts;
        let default = self.default_store().await?;
        let has_presets = !default.standing().await?.profile.presets.is_empty();
        if contexts.is_empty() && !has_presets {
            return Ok(None);
        }
        let mut stores = Vec::with_capacity(contexts.len());
        for context in &contexts {
            stores.push((self.opened(&context.id).await?, ExportRange::default()));
        }
        if has_presets {
            // Presets are in its settings; what was said in it is none of the contexts'.
            stores.push((default, ExportRange::default().seqs(0..=0)));
        }
        let unread = self.write(&name, &stores).await?;
        if unread == 0 {
            self.rotate(DAILY, keep).await?;
        }
        Ok(Some((name, unread)))
    }

    /// Backs up one context that is to be removed. The file's name.
    ///
    /// # Errors
    /// [`ContextFailure::NotBackedUp`] where something of it cannot be read; there is no file then.
    pub(super) async fn back_up(&self, id: &str, now: &Zoned) -> Result<String> {
        let store = self.opened(id).await?;
        let folder = Scope::Named { id: id.to_owned() }.folder()?.pop().unwrap_or_default();
        let time = now.timestamp().as_millisecond();
        let name = format!("{REMOVED}{time}-{folder}{ENDING}");
        let unread = self.write(&name, &[(store, ExportRange::default())]).await?;
        if unread > 0 {
            let folder = self.folder()?;
            blocking(move || folder.remove(&name)).await?;
            return Err(ContextFailure::NotBackedUp { unread }.into());
        }
        self.rotate(REMOVED, KEPT).await?;
        Ok(name)
    }

    async fn write(
        &self,
        name: &str,
        stores: &[(FileConversationStore, ExportRange)],
    ) -> Result<usize> {
        let folder = self.folder()?;
        // Makes the folder, private to its owner.
        blocking(move || folder.sync()).await?;
        let path = self.0.backups.join(name);
        let Some((first, _)) = stores.first() else { return Ok(0) };
        let mut exporter = sealed(&path, first).await?;
        for (store, range) in stores {
            exporter.add(store, *range, |_| {}).await?;
        }
        Ok(exporter.finish().await?.skipped.len())
    }

    fn folder(&self) -> Result<FsBlobs> {
        FsBlobs::new(&self.0.backups, &[])
    }

    /// The names of backups of one kind, the oldest first.
    async fn names(&self, kind: &'static str) -> Result<Vec<String>> {
        let folder = self.folder()?;
        blocking(move || {
            let mut names = Vec::new();
            folder.list(&mut |name, entry| {
                if let Ok(name) = str::from_utf8(name)
                    && entry == EntryKind::File
                    && name.starts_with(kind)
                    && name.ends_with(ENDING)
                {
                    names.push(name.to_owned());
                }
            })?;
            names.sort_unstable();
            Ok(names)
        })
        .await
    }

    /// Leaves only the newest. By their number, not by the time: a clock that is wrong deletes no backup.
    async fn rotate(&self, kind: &'static str, keep: usize) -> Result<()> {
        let names = self.names(kind).await?;
        let surplus = names.len().saturating_sub(keep);
        let folder = self.folder()?;
        blocking(move || names.iter().take(surplus).try_for_each(|name| folder.remove(name))).await
    }
}

async fn sealed(path: &Path, store: &FileConversationStore) -> Result<Exporter> {
    let (path, store) = (path.to_owned(), store.clone());
    blocking(move || Exporter::sealed(&path, &store)).await
}
