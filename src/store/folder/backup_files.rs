//! The sealed backups that a store makes by itself of conversations with a persona. Each holds one conversation and says in its name
//! which: so that forgetting finds what else has the words, without a key.

use std::sync::Arc;

use crate::directory::{Directory, EntryKind};
use crate::error::Result;
use crate::scope::Scope;

/// The file extension of backups.
const ENDING: &str = ".sottovoce";

/// When a backup was made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Made {
    /// On this day, as `2026-11-26`.
    Daily(String),
    /// Before its conversation was removed. The newest has the highest number.
    Removed(i64),
}

/// A backup's name: when it was made, and the last part of its conversation's folder; none for that of the presets, which stand in
/// the default conversation's settings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BackupName {
    pub(crate) made: Made,
    pub(crate) folder: Option<String>,
}

impl BackupName {
    pub(crate) fn of(made: Made, scope: &Scope) -> Result<Self> {
        Ok(Self { made, folder: scope.folder()?.pop() })
    }

    pub(crate) fn file_name(&self) -> String {
        let folder = self.folder.as_ref().map(|folder| format!("-{folder}")).unwrap_or_default();
        match &self.made {
            Made::Daily(day) => format!("daily-{day}{folder}{ENDING}"),
            Made::Removed(number) => format!("removed-{number}{folder}{ENDING}"),
        }
    }

    /// `None` for a name of another form, which is nobody's of ours.
    fn parse(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(ENDING)?;
        if let Some(rest) = stem.strip_prefix("removed-") {
            let (number, folder) = rest.split_once('-')?;
            let made = Made::Removed(number.parse().ok()?);
            return Some(Self { made, folder: Some(folder.to_owned()) });
        }
        let rest = stem.strip_prefix("daily-")?;
        let (day, rest) = rest.split_at_checked("2026-11-26".len())?;
        let made = Made::Daily(day.parse::<jiff::civil::Date>().ok()?.to_string());
        let folder = match rest {
            "" => None,
            rest => Some(rest.strip_prefix('-')?.to_owned()),
        };
        Some(Self { made, folder })
    }
}

/// The folder with the backups.
#[derive(Debug, Clone)]
pub(crate) struct BackupFiles(pub(crate) Arc<dyn Directory>);

impl BackupFiles {
    /// All backups, the daily ones first, from the oldest on.
    pub(crate) fn list(&self) -> Result<Vec<BackupName>> {
        let mut names = Vec::new();
        self.0.list(&mut |name, entry| {
            let name = str::from_utf8(name).ok().and_then(BackupName::parse);
            names.extend(name.filter(|_| entry == EntryKind::File));
        })?;
        names.sort_unstable();
        Ok(names)
    }

    /// The names of the daily ones of a conversation.
    pub(crate) fn daily_of(&self, scope: &Scope) -> Result<Vec<String>> {
        let Scope::Named { .. } = scope else { return Ok(Vec::new()) };
        let own = scope.folder()?.pop();
        let mut names = self.list()?;
        names.retain(|name| matches!(name.made, Made::Daily(_)) && name.folder == own);
        Ok(names.iter().map(BackupName::file_name).collect())
    }

    /// Deletes as many of them as it can, durably. Returns how many.
    pub(crate) fn delete(&self, names: &[String]) -> usize {
        let failed = |error: &_| tracing::warn!(%error, "could not delete a backup");
        let is_deleted = |name: &&String| self.0.remove(name).inspect_err(failed).is_ok();
        let deleted = names.iter().filter(is_deleted).count();
        if deleted > 0
            && let Err(error) = self.0.sync()
        {
            tracing::warn!(%error, "deleted backups may come back after a power failure");
        }
        deleted
    }
}
