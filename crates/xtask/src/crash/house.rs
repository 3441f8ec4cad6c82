//! The store that everything here works on, and how a process tells what it was told.

use std::io::Write;
use std::path::Path;

use sottovoce::{
    ChatMessage, ChatRole, ConversationStore, EncryptionKey, FileConversationStore, Scope,
    StoreOptions,
};

use crate::Result;

pub(crate) async fn open(root: &Path, loose: usize) -> Result<FileConversationStore> {
    open_as(&Whose::default(), root, loose).await
}

/// Which conversation, under which key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Whose {
    /// One user's, or the one that is nobody's.
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

/// How one's conversation is opened.
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

/// The words of each number, so that a swap would show.
pub(crate) fn text(seq: u64) -> String {
    format!("message number {seq}")
}

pub(crate) fn said(text: String) -> Result<ChatMessage> {
    Ok(ChatMessage::at(ChatRole::User, text, "2025-08-24T16:36:25.123Z".parse()?))
}

/// Appends the message of a number, under which it must be kept.
pub(crate) async fn append(store: &FileConversationStore, seq: u64) -> Result<()> {
    let stored = store.append_message(said(text(seq))?).await?;
    if stored.seq == seq { Ok(()) } else { Err(format!("{} in place of {seq}", stored.seq).into()) }
}

/// Tells whoever has started this process, in one system call; others have nobody to tell.
pub(crate) fn say(what: &str) {
    if std::env::args().nth(1).as_deref() != Some(super::WORK) {
        return;
    }
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("@{what}\n").as_bytes()).and_then(|()| out.flush());
}

/// With one thread for everything that blocks, so that calls can be counted.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.max_blocking_threads(1).build()?.block_on(work)
}
