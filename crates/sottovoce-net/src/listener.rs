//! An address that is listened on

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

/// A server that is bound to its address but does not answer yet.
pub struct Listener {
    pub(crate) socket: TcpListener,
    address: SocketAddr,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<tokio_rustls::TlsAcceptor>,
}

impl Listener {
    /// Binds an address.
    ///
    /// # Errors
    /// Fails if the address is in use, or does not belong to this machine.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        Ok(Self {
            address: socket.local_addr()?,
            socket,
            #[cfg(feature = "tls")]
            tls: None,
        })
    }

    /// The address it listens on, with the actual port if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Speaks TLS with this certificate, after which its chain may follow, and its key: both files in PEM.
    ///
    /// # Errors
    /// Fails if one of the files cannot be used.
    #[cfg(feature = "tls")]
    pub fn tls(
        self,
        certificate: &std::path::Path,
        key: &std::path::Path,
    ) -> Result<Self, crate::TlsError> {
        Ok(Self { tls: Some(crate::tls::acceptor(certificate, key)?), ..self })
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("address", &self.address).finish_non_exhaustive()
    }
}
