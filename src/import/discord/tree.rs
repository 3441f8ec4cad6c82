//! The folders that the Discord bot's files are in.

use std::sync::Arc;

use super::name;
use crate::blob::{Blobs, EntryKind};
use crate::error::{Error, Result};
use crate::import::{ForeignConversations, Refusal, RefusalReason};
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

/// A folder on the way, and its path below the folder of all.
struct Level {
    blobs: Arc<dyn Blobs>,
    path: String,
}

/// All files that conversations are in, sorted; what only looks like one is refused.
pub(super) fn entries(root: &dyn Blobs, found: &mut ForeignConversations) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let top = |name: &str| Level { blobs: root.folder(name), path: name.to_owned() };
    files(&top("dms"), |user| Scope::Dm { user }, &mut entries, found)?;
    let guilds = top("guilds");
    for guild in folders(&guilds, found)? {
        let channels = guilds.below(&guild);
        for channel in folders(&channels, found)? {
            let scope =
                |user| Scope::Guild { guild: guild.clone(), channel: channel.clone(), user };
            files(&channels.below(&channel), scope, &mut entries, found)?;
        }
    }
    Ok(entries)
}

impl Level {
    fn below(&self, name: &str) -> Self {
        Self { blobs: self.blobs.folder(name), path: self.place(name) }
    }

    fn place(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Its entries, sorted; none where it cannot be looked into, which is refused.
    fn list(&self, found: &mut ForeignConversations) -> Result<Vec<(Vec<u8>, EntryKind)>> {
        let mut entries = Vec::new();
        let listed = self.blobs.list(&mut |name, kind| entries.push((name.to_vec(), kind)));
        if let Err(error) = listed {
            found.refused.push(Refusal::new(&self.path, RefusalReason::unread(error)?));
            return Ok(Vec::new());
        }
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(entries)
    }

    fn refusal(&self, name: &[u8], reason: RefusalReason) -> Refusal {
        Refusal::new([self.path.as_bytes(), b"/", name].concat(), reason)
    }
}

fn folders(level: &Level, found: &mut ForeignConversations) -> Result<Vec<String>> {
    let mut folders = Vec::new();
    for (name, kind) in level.list(found)? {
        match (kind, str::from_utf8(&name)) {
            (EntryKind::Folder, Ok(name)) => folders.push(name.to_owned()),
            (EntryKind::File, _) => found.passed_over += 1,
            (kind, _) => found.refused.push(level.refusal(&name, misnamed(kind))),
        }
    }
    Ok(folders)
}

fn files(
    level: &Level,
    scope: impl Fn(String) -> Scope,
    entries: &mut Vec<Entry>,
    found: &mut ForeignConversations,
) -> Result<()> {
    for (name, kind) in level.list(found)? {
        let Some(stem) = name::stem(&name) else {
            found.passed_over += 1;
            continue;
        };
        let (EntryKind::File, Ok(file), Ok(stem)) =
            (kind, str::from_utf8(&name), str::from_utf8(stem))
        else {
            found.refused.push(level.refusal(&name, misnamed(kind)));
            continue;
        };
        let (user, persona) = name::parts(stem);
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

/// Why what has such a name is not what it should be.
fn misnamed(kind: EntryKind) -> RefusalReason {
    match kind {
        EntryKind::Folder => RefusalReason::NotPlain("a folder"),
        EntryKind::Other => RefusalReason::NotPlain("a link, pipe or device"),
        EntryKind::File => RefusalReason::Corrupt("its name is not text"),
    }
}
