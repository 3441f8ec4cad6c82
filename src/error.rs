//! The one error type: what happened, where, and what to do about it.

mod context;
mod model;

use std::io;
use std::path::PathBuf;

pub use context::PersonaFailure;
pub use model::{AnswerLimit, ModelFailure};

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a task of its own came to.
pub(crate) fn joined<T>(outcome: Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    match outcome {
        Ok(outcome) => outcome,
        // A component of the host's panicked; the panic is the host's to see.
        Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
        Err(_) => Err(Error::ShuttingDown),
    }
}

/// Everything that can go wrong, with the file or record it happened at.
///
/// The message says what and where; [`Error::help`] says what to do. Neither ever holds the words of a message or
/// any part of a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No key was configured and none may be invented.
    #[error("no encryption key is configured")]
    NoKey,
    /// The configured key is the public placeholder of the sample configuration.
    #[error("the encryption key is still the public placeholder; nothing is written under it")]
    PlaceholderKey,
    /// The configured key is an empty or blank string.
    #[error("the encryption key is empty")]
    EmptyKey,
    /// The passphrase given is empty or blank.
    #[error("the passphrase is empty")]
    EmptyPassphrase,
    /// A store's key is made of a passphrase, and none was given.
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
    /// A store exists, but the file with its key does not. No other key is made, since it could not read the store.
    #[error("{}: holds a store, but its key file {} is missing", root.display(), key_file.display())]
    KeyLost {
        /// The storage root.
        root: PathBuf,
        /// Where the key file should be.
        key_file: PathBuf,
    },
    /// The store was written under another key. Nothing was changed.
    #[error("{place}: sealed under key {found}, which is not the key given")]
    WrongKey {
        /// The vault or record.
        place: String,
        /// Id of the key that the store was written under.
        found: String,
    },
    /// The store's key was changed while the program had it open, to one that it cannot find.
    #[error("{place}: the store's key was changed while this program was running")]
    KeyChanged {
        /// The vault.
        place: String,
    },
    /// Records exist, but the file that names their key is gone, so nothing may be written.
    #[error("{}: holds records, but its `vault` file is missing", path.display())]
    VaultMissing {
        /// The storage root.
        path: PathBuf,
    },
    /// The file that names the store's keys is not in its format. Nothing was changed.
    #[error("{}: damaged: {reason}", path.display())]
    VaultDamaged {
        /// The vault.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// So many changes of keys were begun and not ended that no other can begin. Nothing was changed.
    #[error("{}: names {keys} keys, and no more can be added", path.display())]
    TooManyKeys {
        /// The vault.
        path: PathBuf,
        /// How many it names.
        keys: usize,
    },
    /// A file that must be readable for the store to work is not in its format.
    #[error("{place}: damaged: {reason}")]
    Damaged {
        /// The file.
        place: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A file says that it was written by a newer version of the format.
    #[error("{place}: written in format version {version}; this program knows version 1")]
    NewerFormat {
        /// The file.
        place: String,
        /// The version it names.
        version: u64,
    },
    /// A message's sealed form would be over the limit.
    #[error("the message takes {size} bytes; the limit is {limit}")]
    TooLarge {
        /// Bytes of the record, as JSON.
        size: usize,
        /// The limit of this store, in bytes.
        limit: usize,
    },
    /// The window that a snapshot would save holds no message, or everything in it was forgotten meanwhile.
    #[error("the window holds no message, so there is no snapshot to save")]
    NothingToSave,
    /// A message that cannot be represented on disk.
    #[error("the message cannot be stored: {reason}")]
    InvalidMessage {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A message's time lies more than 24 hours ahead of the clock.
    #[error("the message's time is more than 24 hours ahead of this machine's clock")]
    FromTheFuture,
    /// This machine's clock shows a time before the newest message's, so that what has expired cannot be told. Nothing
    /// was removed.
    #[error("this machine's clock is behind the newest message, which is of {newest}")]
    ClockBehind {
        /// The newest message's time.
        newest: jiff::Timestamp,
    },
    /// The conversation has changed since its state was read. Nothing was changed; the caller reads it again and retries.
    #[error("the conversation has changed meanwhile")]
    Conflict,
    /// A stored utterance was to be answered, or an inventory compared, in a conversation that is not its own.
    #[error("it belongs to another conversation")]
    OtherScope,
    /// A scope id that is empty, too long, or holds control characters.
    #[error("not a scope id: {reason}")]
    InvalidScope {
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is no snapshot of that id.
    #[error("there is no such snapshot; {}", suggestion(nearest, "saved"))]
    NoSuchSnapshot {
        /// The ids that are most like it.
        nearest: Vec<String>,
    },
    /// The conversation's store keeps no artifacts.
    #[error("the store keeps no artifacts")]
    NoArtifacts,
    /// There is no artifact of that id, or several begin so.
    #[error("there is no such artifact; {}", suggestion(nearest, "added"))]
    NoSuchArtifact {
        /// The ids that are most like it.
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
    /// The operating system could not make bytes durable. Nothing was acknowledged, and this store writes no more.
    #[error("{}: could not be made durable", path.display())]
    NotDurable {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// An earlier write could not be made durable; this store writes no more until it is opened anew.
    #[error("{}: an earlier write could not be made durable", path.display())]
    Poisoned {
        /// The conversation's folder.
        path: PathBuf,
    },
    /// The disk, quota or inode table is full. Nothing was acknowledged.
    #[error("{}: no space left to {action}", path.display())]
    NoSpace {
        /// What was being done.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
    },
    /// The storage folder was deleted or exchanged while in use.
    #[error("{}: the folder was deleted or replaced while in use", path.display())]
    FolderReplaced {
        /// The folder as it was opened.
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
        /// How many are durable.
        stored: usize,
        /// How many were handed over.
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
        /// What is wrong, naming the key; never its value.
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
    /// The operating system refused; the cause is the source.
    #[error("{}: could not {action}", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// The process or machine has run out of open files or memory; it may work again later.
    #[error("{}: out of open files or memory; could not {action}", path.display())]
    Exhausted {
        /// What was being done.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// There is not enough memory to make a key of a passphrase. Nothing was changed.
    #[error("there is not enough memory to make the key of the passphrase")]
    NoMemory,
    /// The operating system gave no random bytes; nothing was sealed.
    #[error("the operating system gave no randomness; nothing was sealed")]
    NoRandomness,
    /// A component that the host plugged in failed.
    #[error("{component} failed")]
    Host {
        /// Which component.
        component: &'static str,
        /// Its own error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A model gave no answer, or no whole one.
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
    /// Another turn of the conversation is not over, and the host wants no second one to wait. Nothing was kept.
    #[error("another turn of this conversation is not over")]
    TurnInProgress,
    /// There is no utterance that still waits for its answer.
    #[error("no utterance waits for an answer")]
    NothingToRetry,
    /// The message that was to be answered was forgotten meanwhile, or its whole conversation was. The answer was not kept.
    #[error("what was said was forgotten meanwhile, so the answer to it is not kept")]
    UtteranceForgotten,
    /// The results of tools do not fit the calls that the model made.
    #[error("the model called {called} tools, and {given} results were given")]
    ToolResults {
        /// How many calls the last answer made.
        called: usize,
        /// How many results came.
        given: usize,
    },
    /// Something cannot be done with a context or a preset.
    #[error(transparent)]
    Context(#[from] PersonaFailure),
    /// The new limits would show again what those in force hide, and nobody has said whether it is to come back. Nothing
    /// was changed.
    #[error("messages that the limits hide are still stored, and would be shown again")]
    HiddenMessages,
    /// More would be deleted or hidden now than was announced: the conversation has changed since. Nothing was done.
    #[error("the conversation has changed meanwhile: more would go now than was announced")]
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

impl Error {
    /// The failure of a component that the host plugged in, such as a retriever. The component's name is shown and
    /// logged; its own error is kept as the source.
    pub fn host(
        component: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Host { component, source: source.into() }
    }

    /// What the reader can do about it, in one line.
    pub fn help(&self) -> &'static str {
        match self {
            Self::NoKey | Self::PlaceholderKey => {
                "nothing is stored yet; make a key file or configure a key first"
            }
            Self::EmptyKey => {
                "give Context.EncryptionKey a long secret, or leave it out to use a key file"
            }
            Self::EmptyPassphrase => "give a passphrase of several words",
            Self::PassphraseNeeded { .. } => {
                "give it on the terminal, with --passphrase-fd, or as Context.Passphrase, KeyFd or KeyCredential"
            }
            Self::KeyFile { .. } => {
                "correct it as the message above says; if it is lost, restore it from your backup"
            }
            Self::KeyLost { .. } => {
                "restore the key file from your backup; without it the records cannot be read by anyone"
            }
            Self::WrongKey { .. } => {
                "give the key that the store was made with; nothing was changed"
            }
            Self::KeyChanged { .. } => {
                "start the program again with the new key; nothing was written under the old one"
            }
            Self::VaultMissing { .. } => {
                "restore `vault` from a backup, for a passphrase its copy beside the key file; for other keys a repair makes one that fits the records"
            }
            Self::VaultDamaged { .. } => {
                "put its copy `vault.…` from the configuration folder in its place; if there is none, move it out of the store's folder and repair the store, which makes it anew for key files and secret strings"
            }
            Self::TooManyKeys { .. } => {
                "end a change that was begun: change the key to the one that writes now; leave what does not open, if need be"
            }
            Self::Damaged { .. } => {
                "restore the file from a backup, and verify the store for the whole picture"
            }
            Self::NewerFormat { .. } => {
                "use the newer version of the program that wrote it; nothing was changed"
            }
            Self::TooLarge { .. } => "split the text into several messages below the limit",
            Self::NothingToSave => "say something first, or let the window reach further back",
            Self::InvalidMessage { .. } | Self::InvalidScope { .. } => {
                "correct it as the message above says"
            }
            Self::ClockBehind { .. } => {
                "set the machine's clock and try again; nothing was removed"
            }
            Self::NoSuchSnapshot { .. } => "list the snapshots and choose one of them",
            Self::NoSuchArtifact { .. } => "list the artifacts and choose one of them",
            Self::Conflict => "try again",
            Self::NoArtifacts => "use a store that keeps artifacts, as the file store does",
            Self::OtherScope => "use it in the conversation that it is from",
            Self::FromTheFuture => "set the machine's clock, or correct the message's time",
            Self::LockTimeout { .. } => {
                "try again; if it persists, look for a stopped process that uses this folder"
            }
            Self::NotDurable { .. } | Self::Poisoned { .. } => {
                "check the disk, verify the store, and open it anew"
            }
            Self::NoSpace { .. } => {
                "free some space and try again; what was acknowledged before is safe"
            }
            Self::FolderReplaced { .. } => {
                "put the folder back, or open the store anew or run the command again"
            }
            Self::NotPlain { .. } => {
                "move it away, or set Context.StorageRoot or Context.KeyFile to the real path"
            }
            Self::Partial { .. } => {
                "mend the cause, then send only the messages after those that were stored"
            }
            Self::Config { .. } => "correct it there; the README lists the settings",
            Self::NotImportable { .. } => {
                "name the other program's own file, and stop that program if it is running"
            }
            Self::Io { .. } => "check that the path exists and that this user may use it",
            Self::NoMemory | Self::Exhausted { .. } => {
                "close files or programs and try again; nothing is damaged"
            }
            Self::NoRandomness => "try again once the system has started fully",
            Self::Host { .. } => "mend what the cause names",
            Self::Model { failure, .. } => failure.help(),
            Self::Context(failure) => failure.help(),
            Self::NoModel => "give it one with ConversationBuilder::model",
            Self::TurnInProgress => "wait for the answer, or interrupt it first",
            Self::NothingToRetry => "ask something",
            Self::UtteranceForgotten => "ask again, if it is to be answered all the same",
            Self::ToolResults { .. } => "give one result for each call, in the calls' order",
            Self::HiddenMessages => {
                "change the limits with `change_limits`, which keeps or deletes them"
            }
            Self::MoreThanAnnounced => "look again at what would go; nothing was changed",
            Self::ShuttingDown => "keep the runtime alive until pending calls have returned",
        }
    }

    /// An error of the operating system while doing something with a file: [`Error::Io`], or what says more about why.
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
