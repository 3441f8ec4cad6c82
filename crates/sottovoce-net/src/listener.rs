//! An address that is listened on

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

use crate::socket::Socket;

/// A connection, with TLS or without.
pub type Stream = Box<dyn Duplex>;

/// What can be read and written.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// The address is in use, or does not belong to this machine.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen at {address}")]
pub struct ListenError {
    /// The address.
    pub address: SocketAddr,
    /// The operating system's error.
    #[source]
    pub source: io::Error,
}

/// A server that is bound to its address but does not answer yet.
pub struct Listener {
    pub(crate) socket: TcpListener,
    address: SocketAddr,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsAcceptor>,
}

impl Listener {
    /// Binds an address.
    ///
    /// # Errors
    /// [`ListenError`].
    pub async fn bind(address: SocketAddr) -> Result<Self, ListenError> {
        let failed = |source| ListenError { address, source };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        Ok(Self {
            address: socket.local_addr().map_err(failed)?,
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

    /// What a new connection becomes: itself, or TLS over it.
    pub(crate) fn handshake(
        &self,
        socket: Socket,
    ) -> impl Future<Output = Option<Stream>> + Send + use<> {
        #[cfg(feature = "tls")]
        let tls = self.tls.clone();
        async move {
            #[cfg(feature = "tls")]
            if let Some(tls) = tls {
                return tls.accept(socket).await.ok().map(|stream| Box::new(stream) as Stream);
            }
            Some(Box::new(socket) as Stream)
        }
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("address", &self.address).finish_non_exhaustive()
    }
}
