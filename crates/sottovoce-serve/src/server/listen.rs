//! Addresses that are listened on, and limits of their connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sottovoce_net::Listener;

use crate::access::Access;

/// Limits of connections and times.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Limits {
    /// The most connections. One more closes the one that has been idle longest.
    pub connections: usize,
    /// How long the head of a request may take, how long TLS may take, and how long a connection may be silent between
    /// two requests: 60 seconds.
    pub head: Duration,
    /// How long the body of a request may take: 60 seconds.
    pub body: Duration,
    /// How long answers in progress may go on after the server was told to stop: 5 seconds. What came of them by then is
    /// stored.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        Self { connections: 256, head: minute, body: minute, grace: Duration::from_secs(5) }
    }
}

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address is in use, or does not belong to this machine.
    #[error("cannot listen at {address}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// Other machines can reach the address, and clients need not show a key.
    #[error(
        "other machines can reach {address}, and neither a token nor a file of keys is configured"
    )]
    NoKey {
        /// The address.
        address: SocketAddr,
    },
    /// The certificate or its key cannot be used.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] sottovoce_net::TlsError),
}

/// A server that is bound to its address but does not answer yet.
#[derive(Debug)]
pub struct Listening {
    pub(super) listener: Listener,
    pub(super) access: Arc<Access>,
    pub(super) limits: Limits,
}

impl Listening {
    /// Replaces the limits.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The address it listens on, with the actual port if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Speaks TLS with this certificate and its key, both files in PEM.
    ///
    /// # Errors
    /// [`ListenError::Tls`].
    #[cfg(feature = "tls")]
    pub fn tls(
        self,
        certificate: &std::path::Path,
        key: &std::path::Path,
    ) -> Result<Self, ListenError> {
        Ok(Self { listener: self.listener.tls(certificate, key)?, ..self })
    }
}

/// Binds an address.
///
/// # Errors
/// [`ListenError::NoKey`] for an address beyond loopback if clients need no key, and [`ListenError::Address`].
pub async fn listen(address: SocketAddr, access: Access) -> Result<Listening, ListenError> {
    if !address.ip().is_loopback() && !access.is_closed() {
        return Err(ListenError::NoKey { address });
    }
    let listener =
        Listener::bind(address).await.map_err(|source| ListenError::Address { address, source })?;
    Ok(Listening { listener, access: Arc::new(access), limits: Limits::default() })
}
