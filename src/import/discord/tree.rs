//! The folders that the Discord bot's files are in.

use std::sync::Arc;

use super::name;
use crate::blob::{Blobs, EntryKind};
use crate::error::{Error, Result};
use crate::import::level::{Level, misnamed};
use crate::import::{ForeignConversations, RefusalReason};
use crate::scope::Scope;

/// A file that one conversation is in.
pub(super) struct Entry {
    pub(super) folder: Arc<dyn Blobs>,
    /// Its name there.
    pub(super) file: String,
    /// Where that is below the folder of all.
    pub(super) path: String,
    pub(super) scope: Scope,
    pub(super) thread: Option<String>,
}

/// How many folders deep a user's id with slashes is looked for.
const DEEPEST: usize = 16;

/// All files that conversations are in, sorted; what only looks like one is refused.
pub(super) fn entries(root: &dyn Blobs, found: &mut ForeignConversations) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    files(&Level::top(root, "dms"), &|user| Scope::Dm { user }, "", &mut entries, found)?;
    let guilds = Level::top(root, "guilds");
    for guild in guilds.folders(&mut found.refused, &mut found.passed_over)? {
        let channels = guilds.below(&guild);
        for channel in channels.folders(&mut found.refused, &mut found.passed_over)? {
            let scope =
                |user| Scope::Guild { guild: guild.clone(), channel: channel.clone(), user };
            files(&channels.below(&channel), &scope, "", &mut entries, found)?;
        }
    }
    Ok(entries)
}

/// The files of a folder, and of those in it: the bot makes one of each part of a user's id that stands before a slash.
fn files(
    level: &Level,
    scope: &dyn Fn(String) -> Scope,
    before: &str,
    entries: &mut Vec<Entry>,
    found: &mut ForeignConversations,
) -> Result<()> {
    for (name, kind) in level.list(&mut found.refused)? {
        if kind == EntryKind::Folder
            && name::stem(&name).is_none()
            && let Ok(folder) = str::from_utf8(&name)
        {
            match before.matches('/').count() < DEEPEST {
                true => {
                    let before = format!("{before}{folder}/");
                    files(&level.below(folder), scope, &before, entries, found)?;
                }
                false => found.passed_over.add("folders that are too deep", 1),
            }
            continue;
        }
        let Some(stem) = name::stem(&name) else {
            found.passed_over.add("files of another kind", 1);
            continue;
        };
        let (EntryKind::File, Ok(file), Ok(stem)) =
            (kind, str::from_utf8(&name), str::from_utf8(stem))
        else {
            found.refused.push(level.refusal(&name, misnamed(kind)));
            continue;
        };
        let stem = format!("{before}{stem}");
        let (user, persona) = name::parts(&stem);
        let scope = scope(user.to_owned());
        if let Err(Error::InvalidScope { reason }) = scope.folder() {
            found.refused.push(level.refusal(&name, RefusalReason::Unstorable(reason)));
            continue;
        }
        entries.push(Entry {
            folder: Arc::clone(&level.blobs),
            file: file.to_owned(),
            path: level.place(file),
            scope,
            thread: persona.map(str::to_owned),
        });
    }
    Ok(())
}
