//! The error type: what happened, where, and what the user can do.

mod context;
mod model;

use std::io;
use std::path::{Path, PathBuf};

pub use context::PersonaFailure;
pub use model::{AnswerLimit, ModelFailure};

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The result of a spawned task.
pub(crate) fn joined<T>(outcome: Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    match outcome {
        Ok(outcome) => outcome,
        // A component of the host panicked. The panic belongs to the host.
        Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
        Err(_) => Err(Error::ShuttingDown),
    }
}

/// Every error of this crate, with the file or record it happened at.
///
/// The message says what happened and where; [`Error::help`] says what to do. Neither ever holds conversation text or
/// any part of a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No key was configured, and none may be created.
    #[error("no encryption key is configured")]
    NoKey,
    /// The configured key is the public placeholder of the sample configuration.
    #[error("the encryption key is still the public placeholder; nothing is written under it")]
    PlaceholderKey,
    /// The configured key is an empty or blank string.
    #[error("the encryption key is empty")]
    EmptyKey,
    /// The passphrase is empty or blank.
    #[error("the passphrase is empty")]
    EmptyPassphrase,
    /// The store's key is derived from a passphrase, and none was given.
    #[error("{}: opens with a passphrase, and none was given", root.display())]
    PassphraseNeeded {
        /// The storage root.
        root: PathBuf,
    },
    /// A key file is missing, unreadable or not 64 hexadecimal digits and a newline.
    #[error("{}: not usable as a key file: {reason}", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A store exists, but its key file does not. No new key is created, because it could not read the store.
    #[error("{}: holds a store, but its key file {} is missing", root.display(), key_file.display())]
    KeyLost {
        /// The storage root.
        root: PathBuf,
        /// Where the key file should be.
        key_file: PathBuf,
    },
    /// The store was written under another key. Nothing was changed.
    #[error("{place}: sealed under key {found}, not under the given key")]
    WrongKey {
        /// The key list or record.
        place: String,
        /// Id of the key that the store was written under.
        found: String,
    },
    /// The store's key was changed while the program had it open, and the program cannot find the new key.
    #[error("{place}: the store's key was changed while this program was running")]
    KeyChanged {
        /// The key list.
        place: String,
    },
    /// Records exist, but the file with the store's key list is gone, so nothing may be written.
    #[error("{}: holds records, but its `vault` file is missing", path.display())]
    VaultMissing {
        /// The storage root.
        path: PathBuf,
    },
    /// The file with the store's key list is malformed. Nothing was changed.
    #[error("{}: damaged: {reason}", path.display())]
    VaultDamaged {
        /// The key list.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Too many changes of keys were begun and not finished, so no other can begin. Nothing was changed.
    #[error("{}: holds {keys} keys and cannot hold more", path.display())]
    TooManyKeys {
        /// The key list.
        path: PathBuf,
        /// The number of keys in it.
        keys: usize,
    },
    /// A file that the store needs is malformed.
    #[error("{place}: damaged: {reason}")]
    Damaged {
        /// The file.
        place: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A file was written by a newer version of the format.
    #[error("{place}: written in format version {version}; this program knows version 1")]
    NewerFormat {
        /// The file.
        place: String,
        /// The version it names.
        version: u64,
    },
    /// A message exceeds the size limit when sealed.
    #[error("the message takes {size} bytes; the limit is {limit}")]
    TooLarge {
        /// The size of the record's JSON in bytes.
        size: usize,
        /// The limit of this store, in bytes.
        limit: usize,
    },
    /// The window to save holds no message, or all of them were forgotten meanwhile.
    #[error("the window holds no message, so there is no snapshot to save")]
    EmptySnapshot,
    /// A message cannot be stored.
    #[error("the message cannot be stored: {reason}")]
    InvalidMessage {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A message's time lies more than 24 hours ahead of the clock.
    #[error("the message's time is more than 24 hours ahead of this machine's clock")]
    FromTheFuture,
    /// This machine's clock shows a time more than a week before the newest message's, so that expiry cannot be decided.
    /// Nothing was removed.
    #[error(
        "this machine's clock is more than a week behind the newest message, whose time is {newest}"
    )]
    ClockBehind {
        /// The newest message's time.
        newest: jiff::Timestamp,
    },
    /// The conversation has changed since its state was read. Nothing was changed; the caller reads it again and retries.
    #[error("the conversation has changed in the meantime")]
    Conflict,
    /// A stored utterance or an inventory belongs to another conversation.
    #[error("it belongs to another conversation")]
    OtherScope,
    /// A scope id is empty, too long, or holds control characters.
    #[error("not a scope id: {reason}")]
    InvalidScope {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is no snapshot with this id.
    #[error("there is no such snapshot; {}", suggestion(nearest, "saved"))]
    NoSuchSnapshot {
        /// The most similar ids.
        nearest: Vec<String>,
    },
    /// The conversation's store does not support artifacts.
    #[error("the store does not support artifacts")]
    NoArtifacts,
    /// There is no artifact with this id, or several begin with it.
    #[error("there is no such artifact; {}", suggestion(nearest, "added"))]
    NoSuchArtifact {
        /// The most similar ids.
        nearest: Vec<String>,
    },
    /// Another process held the conversation's lock for the whole time-out.
    #[error("{}: another process kept the lock for {waited_ms} ms", path.display())]
    LockTimeout {
        /// The lock file.
        path: PathBuf,
        /// How long this call waited.
        waited_ms: u64,
    },
    /// The operating system could not make bytes durable. Nothing was acknowledged, and this store refuses further
    /// writes.
    #[error("{}: could not be made durable", path.display())]
    NotDurable {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// An earlier write could not be made durable. This store refuses writes until it is opened again.
    #[error("{}: an earlier write could not be made durable", path.display())]
    Poisoned {
        /// The conversation's folder.
        path: PathBuf,
    },
    /// The disk, quota or inode table is full. Nothing was acknowledged.
    #[error("{}: no space left to {action}", path.display())]
    NoSpace {
        /// The operation.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
    },
    /// The storage folder was deleted or replaced while in use.
    #[error("{}: the folder was deleted or replaced while in use", path.display())]
    FolderReplaced {
        /// The folder as it was when opened.
        path: PathBuf,
    },
    /// A path that must be a plain file or folder is something else, such as a symbolic link.
    #[error("{}: {found}, refused", path.display())]
    NotPlain {
        /// The path.
        path: PathBuf,
        /// What it is instead.
        found: &'static str,
    },
    /// Part of a batch was stored before it failed; those messages are durable.
    #[error("only the first {stored} of {total} messages were stored")]
    Partial {
        /// The number of durable messages.
        stored: usize,
        /// The number of messages in the batch.
        total: usize,
        /// Why the rest was not stored.
        #[source]
        source: Box<Error>,
    },
    /// The configuration cannot be used.
    #[error("{place}: {reason}")]
    Config {
        /// The file or environment variable.
        place: String,
        /// What is wrong. Names the key, never its value.
        reason: String,
    },
    /// A source cannot be imported as a whole. Nothing was changed.
    #[error("{}: cannot be imported: {reason}", path.display())]
    NotImportable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The operating system reported an error; see the source.
    #[error("{}: could not {action}", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// The process or machine has run out of open files or memory. A later try may succeed.
    #[error("{}: out of open files or memory; could not {action}", path.display())]
    Exhausted {
        /// The operation.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// There is not enough memory to derive a key from a passphrase. Nothing was changed.
    #[error("there is not enough memory to derive the key from the passphrase")]
    NoMemory,
    /// The operating system gave no random bytes; nothing was sealed.
    #[error("the operating system gave no random bytes; nothing was sealed")]
    NoRandomness,
    /// A component that the host plugged in failed.
    #[error("{component} failed")]
    Host {
        /// The name of the component.
        component: &'static str,
        /// Its own error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A model gave no answer, or only a part of one.
    #[error("no answer from {server}: {failure}")]
    Model {
        /// The server's address without a login, or the model's name.
        server: String,
        /// What happened.
        failure: ModelFailure,
    },
    /// The conversation has no model to ask.
    #[error("the conversation has no model")]
    NoModel,
    /// Another turn of the conversation is in progress, and the host does not let a second one wait. Nothing was
    /// stored.
    #[error("another turn of this conversation is in progress")]
    TurnInProgress,
    /// There is no unanswered utterance.
    #[error("no utterance waits for an answer")]
    NothingToRetry,
    /// The utterance or its whole conversation was forgotten meanwhile. The answer was not stored.
    #[error("the utterance was forgotten meanwhile, so its answer is not stored")]
    UtteranceForgotten,
    /// The number of tool results differs from the number of calls.
    #[error("the model called {called} tools, but {given} results were given")]
    ToolResults {
        /// The number of calls in the last answer.
        called: usize,
        /// The number of results.
        given: usize,
    },
    /// An operation on a context or a preset failed.
    #[error(transparent)]
    Persona(#[from] PersonaFailure),
    /// The new limits would show messages again that the current ones hide, and the caller has not agreed to that.
    /// Nothing was changed.
    #[error("messages that the limits hide are still stored, and would be shown again")]
    HiddenMessages,
    /// More would be deleted or hidden than was announced, because the conversation has changed since. Nothing was
    /// done.
    #[error(
        "the conversation has changed meanwhile: more would be deleted or hidden than was announced"
    )]
    MoreThanAnnounced,
    /// The runtime stopped before the work was done.
    #[error("the runtime is shutting down")]
    ShuttingDown,
}

fn suggestion(nearest: &[String], kept: &str) -> String {
    match nearest {
        [] => format!("none was {kept} in this conversation"),
        ids => format!("the nearest are {}", ids.join(", ")),
    }
}

/// An error and its causes in one line, separated by colons.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut what = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        what = format!("{what}: {cause}");
        source = cause.source();
    }
    what
}

impl Error {
    /// Wraps an error of a component that the host plugged in, such as a retriever. The component's name is shown and
    /// logged; its error becomes the source.
    pub fn host(
        component: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Host { component, source: source.into() }
    }

    /// [`Damaged`](Self::Damaged) at a path.
    pub(crate) fn damaged(path: impl AsRef<Path>, reason: &'static str) -> Self {
        Self::Damaged { place: path.as_ref().display().to_string(), reason }
    }

    /// What a batch fails with once its first `stored` messages are durable: the cause itself if there are none.
    pub(crate) fn partial(stored: usize, total: usize, source: Self) -> Self {
        if stored == 0 { source } else { Self::Partial { stored, total, source: Box::new(source) } }
    }

    /// The error, its causes and the advice in one line, for a client of a server. The paths of the store and the ids of
    /// its keys are its owner's matter; an error that holds them says only that the server's log has more.
    pub fn for_clients(&self, advice: &str) -> String {
        match self {
            Self::PassphraseNeeded { .. }
            | Self::KeyFile { .. }
            | Self::KeyLost { .. }
            | Self::WrongKey { .. }
            | Self::KeyChanged { .. }
            | Self::VaultMissing { .. }
            | Self::VaultDamaged { .. }
            | Self::TooManyKeys { .. }
            | Self::Damaged { .. }
            | Self::NewerFormat { .. }
            | Self::LockTimeout { .. }
            | Self::NotDurable { .. }
            | Self::Poisoned { .. }
            | Self::NoSpace { .. }
            | Self::FolderReplaced { .. }
            | Self::NotPlain { .. }
            | Self::Partial { .. }
            | Self::Config { .. }
            | Self::NotImportable { .. }
            | Self::Io { .. }
            | Self::Exhausted { .. }
            | Self::Host { .. } => "the store cannot be used; the server's log says why".to_owned(),
            error => format!("{}; {advice}", with_causes(error)),
        }
    }

    /// Advice for the user, in one line.
    pub fn help(&self) -> &'static str {
        match self {
            Self::NoKey | Self::PlaceholderKey => {
                "nothing is stored yet; create a key file or configure a key first"
            }
            Self::EmptyKey => {
                "set Context.EncryptionKey to a long secret, or leave it out to use a key file"
            }
            Self::EmptyPassphrase => "give a passphrase of several words",
            Self::PassphraseNeeded { .. } => {
                "give it on the terminal, with --passphrase-fd, or as Context.Passphrase, KeyFd or KeyCredential"
            }
            Self::KeyFile { .. } => {
                "correct the file as the message says; if it is lost, restore it from your backup"
            }
            Self::KeyLost { .. } => {
                "restore the key file from your backup; without it nobody can read the records"
            }
            Self::WrongKey { .. } => "give the key that it was sealed under; nothing was changed",
            Self::KeyChanged { .. } => {
                "start the program again with the new key; nothing was written under the old one"
            }
            Self::VaultMissing { .. } => {
                "restore `vault` from a backup; for a passphrase, a copy lies beside the key file; for other keys, a repair rebuilds it from the records"
            }
            Self::VaultDamaged { .. } => {
                "replace it by its copy `vault.…` from the configuration folder; without a copy, move it out of the store's folder and repair the store, which rebuilds it for key files and secret strings"
            }
            Self::TooManyKeys { .. } => {
                "finish a change of keys: change to the key in use now; skip files that do not open if necessary"
            }
            Self::Damaged { .. } => {
                "restore the file from a backup, and verify the store to find other damage"
            }
            Self::NewerFormat { .. } => {
                "use the newer program version that wrote it; nothing was changed"
            }
            Self::TooLarge { .. } => "split the text into several messages below the limit",
            Self::EmptySnapshot => "say something first, or enlarge the window",
            Self::InvalidMessage { .. } | Self::InvalidScope { .. } => {
                "correct it as the message says"
            }
            Self::ClockBehind { .. } => {
                "set the machine's clock and try again; nothing was removed"
            }
            Self::NoSuchSnapshot { .. } => "list the snapshots and choose one of them",
            Self::NoSuchArtifact { .. } => "list the artifacts and choose one of them",
            Self::Conflict => "try again",
            Self::NoArtifacts => "use a store that supports artifacts, such as the file store",
            Self::OtherScope => "use it with its own conversation",
            Self::FromTheFuture => "set the machine's clock, or correct the message's time",
            Self::LockTimeout { .. } => {
                "try again; if it happens again, look for a stopped process that uses this folder"
            }
            Self::NotDurable { source, .. } if is_unsupported(source) => {
                "the file system cannot make the names in a folder durable (fsync); put the store on one that can"
            }
            Self::NotDurable { .. } | Self::Poisoned { .. } => {
                "check the disk, verify the store, and open it again"
            }
            Self::NoSpace { .. } => {
                "free some space and try again; everything acknowledged before is safe"
            }
            Self::FolderReplaced { .. } => "put the folder back, or open the store again",
            Self::NotPlain { .. } => {
                "move it away, or set Context.StorageRoot or Context.KeyFile to the real path"
            }
            Self::Partial { .. } => {
                "fix the cause, then send only the messages that were not stored"
            }
            Self::Config { .. } => "correct it there; docs/settings.md lists the settings",
            Self::NotImportable { .. } => {
                "give the other program's own file, and stop that program if it is running"
            }
            Self::Io { .. } => "check that the path exists and that this user may use it",
            Self::NoMemory | Self::Exhausted { .. } => {
                "close files or programs and try again; nothing is damaged"
            }
            Self::NoRandomness => "try again once the system has started fully",
            Self::Host { .. } => "fix what the cause names",
            Self::Model { failure, .. } => failure.help(),
            Self::Persona(failure) => failure.help(),
            Self::NoModel => "give it one with ConversationBuilder::model",
            Self::TurnInProgress => "wait for the answer, or interrupt it first",
            Self::NothingToRetry => "ask something",
            Self::UtteranceForgotten => "ask again if you still want an answer",
            Self::ToolResults { .. } => "give one result for each call, in the calls' order",
            Self::HiddenMessages => {
                "change the limits with `change_limits`, which keeps or deletes them"
            }
            Self::MoreThanAnnounced => "make a new plan and check it; nothing was changed",
            Self::ShuttingDown => "keep the runtime alive until pending calls have returned",
        }
    }

    /// Wraps an operating system's error: [`Error::Io`], or a more specific error for some kinds.
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        use rustix::io::Errno;
        let path = path.into();
        match Errno::from_io_error(&source) {
            Some(Errno::NOSPC | Errno::DQUOT) => Self::NoSpace { action, path },
            Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
                Self::Exhausted { action, path, source }
            }
            _ => Self::Io { action, path, source },
        }
    }
}

/// Whether the system cannot do something at all, rather than that it failed.
fn is_unsupported(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::INVAL | Errno::NOTSUP | Errno::NOSYS | Errno::NOLCK))
}
