//! Reads folders of the Discord bot: a JSON file for each user in each channel.

mod file;
mod name;
mod tree;

use std::io;
use std::path::PathBuf;

use jiff::Timestamp;
use sottovoce::admin::Progress;
use sottovoce::import::{ImportedConversation, ImportedConversations, Refusal};
use sottovoce::store::Retention;
use sottovoce::{Error, Result};

use self::tree::Entry;
use crate::reader::{Reader, each};
use crate::source::{Folder, Refusable};
use crate::system::DISCORD;

/// The most messages of a conversation that the bot keeps, and for how long after the last one.
const MOST: u32 = 15;
const TTL_SECONDS: u64 = 24 * 3600;

/// Reads the folder of the Discord bot: `guilds/{guild}/{channel}/{user}.json` and `dms/{user}.json`, and for a
/// persona `{user}_{persona}.json` beside them. Each file becomes a conversation; a file with a persona becomes a
/// thread of that user's conversation. Links and files over 16 MiB are refused.
///
/// The bot keeps the newest 15 messages of a conversation, for a day after the last one. Each message's metadata
/// `expiresAt` holds the end of that day; from then on prompts leave it out. It stays in the store, unless the bot's
/// limits are [imported too](ImportedConversations::with_limits). A repeated import does not change the `expiresAt`
/// of stored messages.
///
/// The messages keep the order of the file, even if their times contradict it, because a clock may have been set
/// back.
#[derive(Debug)]
pub struct DiscordFolder {
    path: PathBuf,
    now: Timestamp,
}

impl DiscordFolder {
    /// The folder that holds `guilds` and `dms`, or a folder with that one as `context`. Conversations that had expired
    /// at `now` are marked.
    pub fn new(path: impl Into<PathBuf>, now: Timestamp) -> Self {
        Self { path: path.into(), now }
    }

    /// The folder that holds `guilds` or `dms`.
    fn root(&self) -> Result<Folder> {
        let given = Folder::named(&self.path)?;
        for folder in [given.clone(), given.inside("context")] {
            if folder.has_folder("guilds")? || folder.has_folder("dms")? {
                return Ok(folder);
            }
        }
        Err(Error::io("find `guilds` or `dms` in it", &self.path, io::ErrorKind::NotFound.into()))
    }

    /// `None` if the file was removed after the folder was listed: the bot may be running.
    fn read_one(&self, entry: &Entry) -> Refusable<Option<ImportedConversation>> {
        let bytes = match entry.folder.read(&entry.file)? {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(Ok(None)),
            Err(reason) => return Ok(Err(reason)),
        };
        let mut conversation = ImportedConversation::new(entry.scope.clone(), DISCORD);
        conversation.thread.clone_from(&entry.thread);
        conversation.limits = Retention::FOREVER.max_messages(MOST).ttl_seconds(TTL_SECONDS).into();
        let messages = &mut conversation.messages;
        let read = file::read(&bytes, &entry.path, entry.thread.as_deref(), messages);
        Ok(read.map(|expiry| {
            conversation.expired = expiry.is_some_and(|expiry| expiry < self.now);
            Some(conversation)
        }))
    }
}

impl Reader for DiscordFolder {
    type Output = ImportedConversations;

    fn read_blocking(self, progress: &dyn Fn(Progress)) -> Result<ImportedConversations> {
        let root = self.root()?;
        let mut found = ImportedConversations::new(DISCORD);
        let entries = tree::entries(&root, &mut found)?;
        each(&entries, progress, |entry| -> Result<()> {
            match self.read_one(entry)? {
                Ok(conversation) => found.conversations.extend(conversation),
                Err(reason) => found.refused.push(Refusal::new(&entry.path, reason)),
            }
            Ok(())
        })?;
        Ok(found.sorted())
    }
}
