//! The folders of the Discord bot's files.

use sottovoce::import::ImportedConversations;
use sottovoce::{Result, Scope};

use super::name;
use crate::source::{EntryKind, Folder, misnamed, storable};

/// The file of one conversation.
pub(super) struct Entry {
    pub(super) folder: Folder,
    /// Its name in the folder.
    pub(super) file: String,
    /// Its path below the source's folder.
    pub(super) path: String,
    pub(super) scope: Scope,
    pub(super) thread: Option<String>,
}

/// The most folders below each other in which a user's id with slashes is searched.
const DEEPEST: usize = 16;

/// Finds all files of conversations, sorted. Refuses entries that only look like one.
pub(super) fn entries(root: &Folder, found: &mut ImportedConversations) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    files(&root.below("dms"), &|user| Scope::Dm { user }, "", &mut entries, found)?;
    let guilds = root.below("guilds");
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

/// Finds the files of a folder and its subfolders: the bot writes a user's id with slashes as folders.
fn files(
    level: &Folder,
    scope: &dyn Fn(String) -> Scope,
    before: &str,
    entries: &mut Vec<Entry>,
    found: &mut ImportedConversations,
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
        let scope = match storable(scope(user.to_owned())) {
            Ok(scope) => scope,
            Err(reason) => {
                found.refused.push(level.refusal(&name, reason));
                continue;
            }
        };
        entries.push(Entry {
            folder: level.clone(),
            file: file.to_owned(),
            path: level.place(file),
            scope,
            thread: persona.map(str::to_owned),
        });
    }
    Ok(())
}
