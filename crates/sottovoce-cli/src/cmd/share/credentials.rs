//! Where the remote's credentials come from.

use std::path::PathBuf;

use sottovoce::Config;
use sottovoce_sync::{Credentials, OpenRemote, open};

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
        if let Some(fd) = self.credentials_fd {
            let credentials = Credentials::from_fd(fd)?;
            return Ok(Box::new(move |address| open(address, &credentials)));
        }
        let file = self.credentials_file.as_ref().or(config.sync.credentials_file.as_ref());
        let Some(file) = file.cloned() else {
            let credentials = Credentials::from_environment();
            return Ok(Box::new(move |address| open(address, &credentials)));
        };
        Credentials::from_file(&file)?;
        Ok(Box::new(move |address| open(address, &Credentials::from_file(&file)?)))
    }
}
