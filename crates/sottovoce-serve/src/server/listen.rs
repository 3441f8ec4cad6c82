//! Addresses that are listened on.

use std::net::SocketAddr;
use std::sync::Arc;

use sottovoce_net::{Limits, Listener};

use crate::access::Access;

/// Why the server cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address is in use, or does not belong to this machine.
    #[error(transparent)]
    Address(#[from] sottovoce_net::ListenError),
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
    let listener = Listener::bind(address).await?;
    Ok(Listening { listener, access: Arc::new(access), limits: Limits::default() })
}
