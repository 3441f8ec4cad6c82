//! What a host does with the page: say what it shows, bind an address, serve.

use std::net::SocketAddr;
#[cfg(feature = "tls")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sottovoce::config::OpenConversations;
use sottovoce::{Clock, Config, EncryptionKey};
use sottovoce_net::Listener;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::enter::{Gate, Names};
use crate::host::{Advice, Checks, Facts};
use crate::house::House;
use crate::server::{self, Door};

/// The page before it has an address.
#[must_use]
pub struct Page {
    house: House,
    advice: Advice,
    checks: Option<Checks>,
    facts: Option<Facts>,
    announce: Arc<dyn Fn(String) + Send + Sync>,
    hosts: Vec<String>,
    certificate: Option<(PathBuf, PathBuf)>,
}

/// Why the page cannot be served at an address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// Other machines can reach the address, and something that protects the page there is not set.
    #[error("other machines can reach {address}, and {missing} is not set")]
    Unprotected {
        /// The address.
        address: SocketAddr,
        /// What is missing: `a token`, `a certificate` or `a host name`.
        missing: &'static str,
    },
    /// The address is in use, or does not belong to this machine.
    #[error(transparent)]
    Address(#[from] sottovoce_net::ListenError),
    /// The certificate or its key cannot be used.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] sottovoce_net::TlsError),
    /// The system gave no random bytes for the link.
    #[error("the system gave no random bytes")]
    NoRandomness(#[source] getrandom::Error),
}

impl Page {
    /// A page of the configured store. It opens the store itself, with the configured key, or with a passphrase that it asks for.
    pub fn new(config: Config, clock: Arc<dyn Clock>) -> Self {
        Self::of(House::own(config, clock))
    }

    /// A page of conversations that other servers of the process have open too. It never locks the store.
    pub fn shared(conversations: Arc<OpenConversations>) -> Self {
        Self::of(House::shared(conversations))
    }

    fn of(house: House) -> Self {
        Self {
            house,
            advice: Advice::default(),
            checks: None,
            facts: None,
            announce: Arc::new(|_| {}),
            hosts: Vec::new(),
            certificate: None,
        }
    }

    /// Opens the store with these keys, instead of looking for them as configured.
    pub fn keys(mut self, keys: Vec<Arc<EncryptionKey>>) -> Self {
        self.house = self.house.keys(keys);
        self
    }

    /// Phrases advice about errors and findings, as the host knows its own commands.
    pub fn advice(self, advice: Advice) -> Self {
        Self { advice, ..self }
    }

    /// The checks of the set-up that the page shows.
    pub fn checks(self, checks: Checks) -> Self {
        Self { checks: Some(checks), ..self }
    }

    /// The facts about the owner's data that the page shows.
    pub fn facts(self, facts: Facts) -> Self {
        Self { facts: Some(facts), ..self }
    }

    /// Calls this with a new link whenever the page has locked, or a browser without a cookie comes while no link is left, so that its
    /// owner gets in again.
    pub fn announce(self, announce: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self { announce: Arc::new(announce), ..self }
    }

    /// Allows these host names besides those of loopback.
    pub fn hosts(mut self, hosts: impl IntoIterator<Item = String>) -> Self {
        self.hosts.extend(hosts);
        self
    }

    /// Speaks HTTPS with this certificate and its key, both files in PEM.
    #[cfg(feature = "tls")]
    pub fn tls(self, certificate: &Path, key: &Path) -> Self {
        Self { certificate: Some((certificate.to_owned(), key.to_owned())), ..self }
    }

    /// Binds an address.
    ///
    /// # Errors
    /// [`PageError::Unprotected`] for an address that other machines can reach, unless a token, a certificate and a host name are
    /// set; otherwise [`PageError::Address`], [`PageError::NoRandomness`], and with TLS the error of the certificate.
    pub async fn listen(self, address: SocketAddr) -> Result<Listening, PageError> {
        let settings = self.house.config().page.clone();
        if !address.ip().is_loopback() {
            let missing = match () {
                () if settings.token.is_none() => Some("a token"),
                () if self.certificate.is_none() => Some("a certificate"),
                () if self.hosts.is_empty() => Some("a host name"),
                () => None,
            };
            if let Some(missing) = missing {
                return Err(PageError::Unprotected { address, missing });
            }
        }
        let listener = Listener::bind(address).await?;
        #[cfg(feature = "tls")]
        let listener = match &self.certificate {
            Some((certificate, key)) => listener.tls(certificate, key)?,
            None => listener,
        };
        let names = Names::new(listener.address(), self.certificate.is_some(), self.hosts);
        let after = Some(Duration::from_secs(settings.lock_after_seconds));
        let after = after.filter(|after| !after.is_zero());
        let token = settings.token.map(|secret| secret.0);
        let gate = Gate::new(token, after).map_err(PageError::NoRandomness)?;
        let read_only = settings.read_only;
        let app = App::new(self.house, self.advice, self.checks, self.facts, read_only);
        let door = Door::new(Arc::new(app), gate, names, self.announce);
        Ok(Listening { listener, door: Arc::new(door) })
    }
}

sottovoce::debug_shows!(Page: hosts);

/// A page that is bound to its address but does not answer yet.
pub struct Listening {
    listener: Listener,
    door: Arc<Door>,
}

impl Listening {
    /// The address it listens on, with the actual port if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// A link that lets one browser in, once. A link that was made before no longer does.
    ///
    /// # Errors
    /// [`PageError::NoRandomness`].
    pub fn link(&self) -> Result<String, PageError> {
        self.door.link().map_err(PageError::NoRandomness)
    }

    /// Serves until `stop` is cancelled. Partial answers are stored then.
    pub async fn serve(self, stop: CancellationToken) {
        server::serve(self.listener, self.door, stop).await;
    }
}

sottovoce::debug_shows!(Listening as it: address = it.address());
