//! The store of the crash tests, and the acknowledgements of its writers.

use std::io::Write;
use std::path::Path;

use sottovoce::{
    ChatMessage, ChatRole, ConversationStore, EncryptionKey, FileConversationStore, Scope,
    StoreOptions,
};

use crate::crash::told::WORK;
use crate::task::Result;

/// The number of files that stay loose, so that packing begins early.
pub(crate) const LOOSE: usize = 64;

pub(crate) async fn open(root: &Path, loose: usize) -> Result<FileConversationStore> {
    open_as(&Whose::default(), root, loose).await
}

/// The conversation and its key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Whose {
    /// A user's conversation, or the default one.
    pub(crate) user: Option<&'static str>,
    /// After a change of keys.
    pub(crate) is_rekeyed: bool,
}

pub(crate) async fn open_as(
    whose: &Whose,
    root: &Path,
    loose: usize,
) -> Result<FileConversationStore> {
    Ok(options(whose)?.loose_files(loose).open(root).await?)
}

/// The options for opening the conversation.
pub(crate) fn options(whose: &Whose) -> Result<StoreOptions> {
    let scope = whose.user.map_or(Scope::Default, |user| Scope::Dm { user: user.into() });
    let key = if whose.is_rekeyed { new_key()? } else { old_key()? };
    Ok(StoreOptions::new(key).scope(scope))
}

pub(crate) fn old_key() -> Result<EncryptionKey> {
    Ok(EncryptionKey::from_secret("a secret to be killed with, long enough")?)
}

pub(crate) fn new_key() -> Result<EncryptionKey> {
    Ok(EncryptionKey::from_secret("another secret to be killed with, as long")?)
}

/// The text of each number, so that swapped messages are noticed.
pub(crate) fn text(seq: u64) -> String {
    format!("message number {seq}")
}

pub(crate) fn said(text: String) -> Result<ChatMessage> {
    Ok(ChatMessage::at(ChatRole::User, text, "2025-08-24T16:36:25.123Z".parse()?))
}

/// Appends the message of a number, and checks that it gets that number.
pub(crate) async fn append(store: &FileConversationStore, seq: u64) -> Result<()> {
    let stored = store.append_message(said(text(seq))?).await?;
    if stored.seq == seq { Ok(()) } else { Err(format!("{} in place of {seq}", stored.seq).into()) }
}

/// Reports to the parent process in one system call. Without a parent, nobody reads it.
pub(crate) fn say(what: &str) {
    if std::env::args().nth(1).as_deref() != Some(WORK) {
        return;
    }
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("@{what}\n").as_bytes()).and_then(|()| out.flush());
}

/// Runs with one blocking thread, so that calls can be counted.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.max_blocking_threads(1).build()?.block_on(work)
}
