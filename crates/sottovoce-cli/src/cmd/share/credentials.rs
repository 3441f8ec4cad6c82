//! Where the remote's credentials come from.

use std::path::PathBuf;

use sottovoce::Config;
use sottovoce_remote::{Credentials, open};
use sottovoce_sync::OpenRemote;

use crate::exit::Failure;

/// Where they come from: one of these options, else Sync.CredentialsFile, else the environment.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Source {
    /// Reads the remote's credentials from this open file descriptor
    #[arg(long, value_name = "FD", conflicts_with = "credentials_file")]
    credentials_fd: Option<u32>,

    /// Reads the remote's credentials from this file, which only its owner may read, instead of Sync.CredentialsFile or
    /// the environment
    #[arg(long, value_name = "FILE")]
    credentials_file: Option<PathBuf>,
}

impl Source {
    /// Opens remotes with these credentials. A file is read now, and again each time, because it may be renewed.
    pub(crate) fn remote(&self, config: &Config) -> Result<OpenRemote, Failure> {
        let credentials = self.read(config)?;
        let Some(file) = self.file(config) else {
            return Ok(Box::new(move |address| open(address, &credentials)));
        };
        Ok(Box::new(move |address| open(address, &Credentials::from_file(&file)?)))
    }

    /// The credentials as they are now.
    pub(crate) fn read(&self, config: &Config) -> Result<Credentials, Failure> {
        Ok(match (self.credentials_fd, self.file(config)) {
            (Some(fd), _) => Credentials::from_fd(fd)?,
            (None, Some(file)) => Credentials::from_file(&file)?,
            (None, None) => Credentials::from_environment(),
        })
    }

    fn file(&self, config: &Config) -> Option<PathBuf> {
        let file = self.credentials_file.as_ref().or(config.sync.credentials_file.as_ref());
        file.filter(|_| self.credentials_fd.is_none()).cloned()
    }
}
