//! Folders of the Discord bot: one JSON file for each person in each channel.

mod file;
mod name;
mod tree;

use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sottovoce::import::{ImportedConversation, ImportedConversations, Refusal};
use sottovoce::{Error, Progress, Result, Retention};

use self::tree::Entry;
use crate::source::{Folder, Refusable, blocking};
use crate::system::DISCORD;

/// The bot keeps this many messages of a conversation, until so long after the last one.
const MOST: u32 = 15;
const TTL_SECONDS: u64 = 24 * 3600;

/// The folder of the Discord bot, which keeps its context in files: `guilds/{guild}/{channel}/{user}.json` and
/// `dms/{user}.json`, and for a persona `{user}_{persona}.json` beside them. It is only read.
///
/// A persona's conversation becomes a thread of that person's. The bot forgets a conversation a day after it was last
/// added to, and all but its newest 15 messages. Its messages say when it expired in their metadata `expiresAt`, and are
/// no context from then on; all of them stay, unless the bot's limits are [asked for](ImportedConversations::with_limits).
/// Those that an earlier import took keep what they said then.
///
/// Messages are in the order of the file, which counts for more than their times: a clock may have been set back.
#[derive(Debug)]
pub struct DiscordFolder {
    path: PathBuf,
    now: Timestamp,
}

impl DiscordFolder {
    /// The folder that holds `guilds` and `dms`, or the one that holds that one as `context`. What had expired at `now`
    /// is marked.
    pub fn new(path: impl Into<PathBuf>, now: Timestamp) -> Self {
        Self { path: path.into(), now }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads every file whose name ends in `.json`, calling `progress` as it goes. All messages are in memory
    /// afterwards: a conversation for each file, its messages in order. Files over 16 MiB are refused, and links.
    ///
    /// # Errors
    /// Only what keeps the whole folder from being read, such as that neither `guilds` nor `dms` is there; what concerns
    /// one file or message is a [`Refusal`].
    pub async fn read(
        self,
        progress: impl Fn(Progress) + Send + 'static,
    ) -> Result<ImportedConversations> {
        blocking(move || self.read_all(&progress)).await
    }

    fn read_all(&self, progress: &dyn Fn(Progress)) -> Result<ImportedConversations> {
        let root = self.root()?;
        let mut found = ImportedConversations::new(DISCORD);
        let entries = tree::entries(&root, &mut found)?;
        for (done, entry) in entries.iter().enumerate() {
            progress(Progress { done, total: entries.len() });
            match self.read_one(entry)? {
                Ok(conversation) => found.conversations.extend(conversation),
                Err(reason) => found.refused.push(Refusal::new(&entry.path, reason)),
            }
        }
        progress(Progress { done: entries.len(), total: entries.len() });
        Ok(found.sorted())
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

    /// `None` where the file has gone since the folder was listed: the bot may be running.
    fn read_one(&self, entry: &Entry) -> Refusable<Option<ImportedConversation>> {
        let bytes = match entry.folder.read(&entry.file)? {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(Ok(None)),
            Err(reason) => return Ok(Err(reason)),
        };
        let mut conversation = ImportedConversation::new(entry.scope.clone(), DISCORD);
        conversation.thread.clone_from(&entry.thread);
        conversation.limits = Retention::FOREVER.max_messages(MOST).ttl_seconds(TTL_SECONDS).into();
        let foreign = &mut conversation.foreign;
        let read = file::read(&bytes, &entry.path, entry.thread.as_deref(), foreign);
        Ok(read.map(|expiry| {
            conversation.expired = expiry.is_some_and(|expiry| expiry < self.now);
            Some(conversation)
        }))
    }
}
