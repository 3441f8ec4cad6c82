//! HTTP connections of a server: accepted within limits, with TLS if wanted, and ended without cutting answers off.
//!
//! A [`Listener`] is bound to an address. [`accept`] hands each request to a function that answers it, until the server is told to
//! stop. [`read`] takes in the body of a request, and [`Body`] is that of an answer.

mod accept;
mod body;
mod connections;
mod listener;
mod request;
mod socket;
#[cfg(feature = "tls")]
mod tls;

pub use accept::{Client, accept};
pub use body::{Body, Sender, pieces};
pub use connections::ConnectionLimits;
pub use listener::Listener;
pub use request::{ReadError, read};
#[cfg(feature = "tls")]
pub use tls::TlsError;
