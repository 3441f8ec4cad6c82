//! Sealed backups of contexts: a daily one of all, and one of each removed context.

use std::path::Path;

use jiff::Zoned;

use super::PersonaRegistry;
use super::upkeep::is_anothers;
use crate::directory::fs::FsDirectory;
use crate::directory::{Directory, EntryKind};
use crate::error::{PersonaFailure, Result};
use crate::scope::Scope;
use crate::store::file_store::blocking;
use crate::store::{FileConversationStore, FindingKind};
use crate::transfer::export::{ExportRange, Exporter};

/// The file extension of backups.
const ENDING: &str = ".sottovoce";
const DAILY: &str = "daily-";
const REMOVED: &str = "removed-";
/// How many backups of removed contexts are kept at least, and for how many days all of them are kept. The days
/// matter if many contexts are removed at once: their backups stay until somebody may notice.
const KEPT: usize = 100;
const KEPT_DAYS: i64 = 30;
const DAY: i64 = 24 * 3600 * 1000;

impl PersonaRegistry {
    /// Backs up all contexts and presets, unless that was done today. Returns the file's name and the number of
    /// unreadable files; `None` if there is a backup of today.
    pub(super) async fn back_up_daily(&self, now: &Zoned) -> Result<Option<(String, usize)>> {
        let keep = self.limits.daily_backups;
        if keep == 0 {
            return Ok(None);
        }
        let name = format!("{DAILY}{}{ENDING}", now.date());
        if self.names(DAILY).await?.contains(&name) {
            return Ok(None);
        }
        let listed = self.list().await?;
        let contexts = &listed.contexts;
        let default = self.default_store().await?;
        let has_presets = !default.conversation_state().await?.profile.presets.is_empty();
        if contexts.is_empty() && !has_presets {
            return Ok(None);
        }
        let mut stores = Vec::with_capacity(contexts.len());
        for context in contexts {
            stores.push((self.opened(&context.id).await?, ExportRange::default()));
        }
        if has_presets {
            // The presets are in this conversation's settings. Its messages do not belong to any context.
            stores.push((default, ExportRange::default().seqs(0..=0)));
        }
        // If settings cannot be read, only older backups hold them.
        let unread = match self.write(&name, &stores).await {
            Err(error) if is_anothers(&error) => return Ok(None),
            unread => unread? + listed.unreadable.len(),
        };
        if unread == 0 {
            // By name, not by time: a wrong clock then deletes no more, and never the newest backup.
            let mut others = self.names(DAILY).await?;
            others.retain(|other| *other != name);
            others.truncate(others.len().saturating_sub(keep - 1));
            self.delete_all(others).await?;
        }
        Ok(Some((name, unread)))
    }

    /// Backs up one context before its removal. Returns the file's name.
    ///
    /// # Errors
    /// [`PersonaFailure::NotBackedUp`] if a part of it cannot be read, or its folder holds files that no backup
    /// includes, such as files set aside by a repair. No file is left then.
    pub(super) async fn back_up(&self, id: &str, now: &Zoned) -> Result<String> {
        let store = self.opened(id).await?;
        let folder = Scope::Named { id: id.to_owned() }.folder()?.pop().unwrap_or_default();
        let before = self.names(REMOVED).await?;
        let newest = before.iter().filter_map(|name| removed_at(name)).max();
        // The newest backup has the highest number, even if the clock was set back.
        let now = now.timestamp().as_millisecond().max(0);
        let number = newest.map_or(now, |newest| now.max(newest.saturating_add(1)));
        let name = format!("{REMOVED}{number}-{folder}{ENDING}");
        let unread = match self.write(&name, &[(store.clone(), ExportRange::default())]).await? {
            0 => beside(&store).await?,
            unread => unread,
        };
        if unread > 0 {
            let folder = self.folder()?;
            blocking(move || folder.remove(&name)).await?;
            return Err(PersonaFailure::NotBackedUp { unread }.into());
        }
        let young = now.saturating_sub(KEPT_DAYS * DAY);
        let mut before: Vec<_> =
            before.into_iter().filter_map(|name| Some((removed_at(&name)?, name))).collect();
        before.sort_unstable();
        before.truncate(before.len().saturating_sub(KEPT - 1));
        before.retain(|(number, _)| *number < young);
        self.delete_all(before.into_iter().map(|(_, name)| name).collect()).await?;
        Ok(name)
    }

    async fn write(
        &self,
        name: &str,
        stores: &[(FileConversationStore, ExportRange)],
    ) -> Result<usize> {
        let folder = self.folder()?;
        // Creates the folder, private to its owner.
        blocking(move || folder.sync()).await?;
        let path = self.backups.join(name);
        let Some((first, _)) = stores.first() else { return Ok(0) };
        let mut exporter = sealed(&path, first).await?;
        for (store, range) in stores {
            exporter.add(store, *range, |_| {}).await?;
        }
        Ok(exporter.finish().await?.skipped.len())
    }

    fn folder(&self) -> Result<FsDirectory> {
        FsDirectory::new(&self.backups, &[])
    }

    /// The names of backups of one kind, oldest first.
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

    async fn delete_all(&self, names: Vec<String>) -> Result<()> {
        let folder = self.folder()?;
        blocking(move || names.iter().try_for_each(|name| folder.remove(name))).await
    }
}

/// The number of files in a conversation's folder that its backup does not include.
async fn beside(store: &FileConversationStore) -> Result<usize> {
    let found = store.verify(|_| {}).await?.findings.into_iter();
    let is_in_none =
        |kind: &FindingKind| kind.is_problem() || matches!(kind, FindingKind::Quarantined { .. });
    Ok(found.filter(|finding| is_in_none(&finding.kind)).count())
}

/// The number in the name of a removed context's backup; `None` if the name has another form.
fn removed_at(name: &str) -> Option<i64> {
    let (number, _) = name.strip_prefix(REMOVED)?.split_once('-')?;
    number.parse().ok()
}

async fn sealed(path: &Path, store: &FileConversationStore) -> Result<Exporter> {
    let (path, store) = (path.to_owned(), store.clone());
    blocking(move || Exporter::sealed(&path, &store)).await
}
