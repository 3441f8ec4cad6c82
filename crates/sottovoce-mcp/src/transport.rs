//! The transports: how clients reach the server.

pub mod http;
pub mod stdio;

mod lenient;

/// Why a transport failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The address is in use, or does not belong to this machine.
    #[error(transparent)]
    Listen(#[from] sottovoce_net::ListenError),
    /// Other machines can reach the address, and no token is configured.
    #[error("other machines can reach {address}, and no token is configured")]
    NoToken {
        /// The address.
        address: std::net::SocketAddr,
    },
    /// The token is empty, so every client would match it.
    #[error("the token is empty")]
    EmptyToken,
    /// The client did not speak the protocol.
    #[error("the client does not speak the protocol: {0}")]
    Protocol(String),
}
