//! Sealed backups of contexts: one of each a day, and one before it is removed.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use jiff::Zoned;

use super::PersonaRegistry;
use super::upkeep::is_anothers;
use crate::directory::fs::FsDirectory;
use crate::error::{PersonaFailure, Result};
use crate::scope::Scope;
use crate::store::file_store::blocking;
use crate::store::folder::backup_files::{BackupFiles, BackupName, Made};
use crate::store::{FileConversationStore, FindingKind};
use crate::transfer::export::{ExportRange, Exporter};

/// How many backups of removed contexts are kept at least, and for how many days all of them are kept. The days
/// matter if many contexts are removed at once: their backups stay until somebody may notice.
const KEPT: usize = 100;
const KEPT_DAYS: i64 = 30;
const DAY: i64 = 24 * 3600 * 1000;

impl PersonaRegistry {
    /// Backs up each context and the presets, unless that was done today. Returns the files' names and the number of
    /// unreadable files.
    pub(super) async fn back_up_daily(&self, now: &Zoned) -> Result<(Vec<BackupName>, usize)> {
        let keep = self.limits.daily_backups;
        if keep == 0 {
            return Ok((Vec::new(), 0));
        }
        let listed = self.list().await?;
        let mut stores = Vec::with_capacity(listed.contexts.len() + 1);
        for context in &listed.contexts {
            let scope = Scope::Named { id: context.id.clone() };
            stores.push((scope, self.opened(&context.id).await?, ExportRange::default()));
        }
        let default = self.default_store().await?;
        if !default.conversation_state().await?.profile.presets.is_empty() {
            // The presets are in this conversation's settings. Its messages do not belong to any context.
            stores.push((Scope::Default, default, ExportRange::default().seqs(0..=0)));
        }
        let today = Made::Daily(now.date().to_string());
        let before = self.names().await?;
        let (mut made, mut unread, mut is_first) = (Vec::new(), 0, true);
        for (scope, store, range) in stores {
            let name = BackupName::of(today.clone(), &scope)?;
            if before.contains(&name) {
                is_first = false;
                continue;
            }
            let known = forgotten(&store).await?;
            match self.write(&name, &store, range).await {
                Err(error) if is_anothers(&error) => continue,
                lacking => unread += lacking?,
            }
            // What was forgotten while it was written may be in it, and was deleted from those that were there.
            match forgotten(&store).await? == known {
                true => made.push(name),
                false => self.delete_all(vec![name]).await?,
            }
        }
        if made.is_empty() {
            return Ok((made, 0));
        }
        // If settings cannot be read, only older backups hold them. What an earlier run of today could not read is not known here.
        unread += listed.unreadable.len();
        if unread == 0 && is_first {
            self.delete_all(before_the_last(keep - 1, before, &today)).await?;
        }
        Ok((made, unread))
    }

    /// Backs up one context before its removal. Returns the file's name.
    ///
    /// # Errors
    /// [`PersonaFailure::NotBackedUp`] if a part of it cannot be read, or its folder holds files that no backup
    /// includes, such as files set aside by a repair. No file is left then.
    pub(super) async fn back_up(&self, id: &str, now: &Zoned) -> Result<String> {
        let store = self.opened(id).await?;
        let numbered = |name: BackupName| match name.made {
            Made::Removed(number) => Some((number, name)),
            Made::Daily(_) => None,
        };
        let mut before: Vec<_> = self.names().await?.into_iter().filter_map(numbered).collect();
        let newest = before.last().map(|(number, _)| *number);
        // The newest backup has the highest number, even if the clock was set back.
        let now = now.timestamp().as_millisecond().max(0);
        let number = newest.map_or(now, |newest| now.max(newest.saturating_add(1)));
        let name = BackupName::of(Made::Removed(number), &Scope::Named { id: id.to_owned() })?;
        let unread = match self.write(&name, &store, ExportRange::default()).await? {
            0 => beside(&store).await?,
            unread => unread,
        };
        if unread > 0 {
            self.delete_all(vec![name]).await?;
            return Err(PersonaFailure::NotBackedUp { unread }.into());
        }
        let young = now.saturating_sub(KEPT_DAYS * DAY);
        before.truncate(before.len().saturating_sub(KEPT - 1));
        before.retain(|(number, _)| *number < young);
        self.delete_all(before.into_iter().map(|(_, name)| name).collect()).await?;
        Ok(name.file_name())
    }

    async fn write(
        &self,
        name: &BackupName,
        store: &FileConversationStore,
        range: ExportRange,
    ) -> Result<usize> {
        let files = self.files()?;
        // Creates the folder, private to its owner.
        blocking(move || files.0.sync()).await?;
        let mut exporter = sealed(&self.backups.join(name.file_name()), store).await?;
        exporter.add(store, range, |_| {}).await?;
        Ok(exporter.finish().await?.skipped.len())
    }

    fn files(&self) -> Result<BackupFiles> {
        Ok(BackupFiles(Arc::new(FsDirectory::new(&self.backups, &[])?)))
    }

    /// All backups, the daily ones first, from the oldest on.
    pub(super) async fn names(&self) -> Result<Vec<BackupName>> {
        let files = self.files()?;
        blocking(move || files.list()).await
    }

    pub(super) async fn delete_all(&self, names: Vec<BackupName>) -> Result<()> {
        let files = self.files()?;
        let remove = move || names.iter().try_for_each(|name| files.0.remove(&name.file_name()));
        blocking(remove).await
    }
}

/// The daily backups of other days than today and the newest of so many. By name, not by time: a wrong clock then deletes no more,
/// and never the newest backup.
fn before_the_last(days: usize, mut names: Vec<BackupName>, today: &Made) -> Vec<BackupName> {
    names.retain(|name| matches!(name.made, Made::Daily(_)) && name.made != *today);
    let made: BTreeSet<_> = names.iter().map(|name| name.made.clone()).collect();
    let kept: Vec<_> = made.into_iter().rev().take(days).collect();
    names.retain(|name| !kept.contains(&name.made));
    names
}

/// How many numbers of a conversation are forgotten.
async fn forgotten(store: &FileConversationStore) -> Result<u64> {
    store.read_with(|reader| Ok(reader.newest()?.erased.count())).await
}

/// The number of files in a conversation's folder that its backup does not include.
async fn beside(store: &FileConversationStore) -> Result<usize> {
    let found = store.verify(|_| {}).await?.findings.into_iter();
    let is_in_none =
        |kind: &FindingKind| kind.is_problem() || matches!(kind, FindingKind::Quarantined { .. });
    Ok(found.filter(|finding| is_in_none(&finding.kind)).count())
}

async fn sealed(path: &Path, store: &FileConversationStore) -> Result<Exporter> {
    let (path, store) = (path.to_owned(), store.clone());
    blocking(move || Exporter::sealed(&path, &store)).await
}
