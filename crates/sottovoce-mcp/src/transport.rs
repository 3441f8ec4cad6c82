//! How clients reach the server.

pub mod http;
pub mod stdio;

mod end_of_input;

/// What keeps a server from being reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The address is taken, or is none of this machine's.
    #[error("cannot listen at {address}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The operating system's answer.
        #[source]
        source: std::io::Error,
    },
    /// Others could reach the address, and no token was given.
    #[error("{address} can be reached by other machines, and no token is configured")]
    NoToken {
        /// The address.
        address: std::net::SocketAddr,
    },
    /// The token has nothing in it, so that everybody could show it.
    #[error("the token is empty")]
    EmptyToken,
    /// What came was not the protocol.
    #[error("the client does not speak the protocol: {0}")]
    Protocol(String),
}
