//! What every command starts from: the configuration, the key, the store.

use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;

use sottovoce::{
    Clock, Config, EncryptionKey, Error, FileConversationStore, StoreOptions, SystemClock,
};

use crate::exit::Failure;
use crate::output;

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) config_file: Option<PathBuf>,
    pub(crate) json: bool,
}

impl Session {
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        Ok(Config::load(self.config_file.as_deref())?)
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    /// The store for reading; never makes a key.
    pub(crate) async fn store(&self, config: &Config) -> Result<FileConversationStore, Failure> {
        match config.open_store(self.clock()).await {
            Err(Error::NoKey | Error::PlaceholderKey) => {
                Err(Failure::Nothing { folder: config.storage_root()? })
            }
            other => Ok(other?),
        }
    }

    /// The store, or an empty one in memory before the first use, since what keeps nothing makes no key.
    pub(crate) async fn store_or_empty(
        &self,
        config: &Config,
    ) -> Result<Arc<FileConversationStore>, Failure> {
        match config.open_store(self.clock()).await {
            Err(Error::NoKey | Error::PlaceholderKey) => {
                let options = StoreOptions::new(EncryptionKey::generate()?);
                Ok(Arc::new(options.open_in_memory().await?))
            }
            other => Ok(Arc::new(other?)),
        }
    }

    /// The store for writing; makes the key file on first use.
    pub(crate) async fn store_or_make(
        &self,
        config: &Config,
    ) -> Result<FileConversationStore, Failure> {
        match config.open_store(self.clock()).await {
            Err(Error::NoKey | Error::PlaceholderKey) => {
                if let Some(file) = config.make_key_file()? {
                    announce_key(&file);
                }
                self.store(config).await
            }
            other => Ok(other?),
        }
    }
}

pub(crate) fn announce_key(file: &std::path::Path) {
    output::note(&format!("made the key file {}", file.display()));
    output::note("back it up somewhere safe: without it nobody can read what is stored");
}

/// The words of a command: its arguments, or standard input where there are none and it is a pipe. Never blank.
pub(crate) fn words(arguments: &[String]) -> Result<String, Failure> {
    let text = if arguments.is_empty() || arguments == ["-"] {
        piped(arguments.is_empty())?
    } else {
        arguments.join(" ")
    };
    if text.trim().is_empty() {
        return Err(Failure::input("the text is empty", "give some words"));
    }
    Ok(text)
}

fn piped(only_a_pipe: bool) -> Result<String, Failure> {
    let mut input = io::stdin();
    if only_a_pipe && input.is_terminal() {
        return Err(Failure::input("there is no text", "give it as an argument or through a pipe"));
    }
    let mut text = String::new();
    input.read_to_string(&mut text).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => {
            Failure::input("the text is not UTF-8", "convert it first, for example with iconv")
        }
        _ => error.into(),
    })?;
    text.truncate(text.trim_end().len());
    Ok(text)
}
