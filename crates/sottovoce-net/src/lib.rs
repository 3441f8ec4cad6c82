//! What every server stands on.
//!
//! A [`Listener`] is bound to an address. [`serve`] hands each request to a function that answers it, until the server is told to stop;
//! [`accept`] does the same with connections that speak another protocol. [`Limits`] say how many connections there are and how long they
//! may take, and [`Memory`] how much they may hold. [`Names`] and [`Token`] tell who may ask. [`Body`] is that of an answer.

mod access;
mod body;
mod limits;
mod listener;
mod memory;
mod metrics;
mod origin;
mod places;
mod reply;
mod serve;
mod socket;
mod surrogates;
#[cfg(feature = "tls")]
mod tls;

pub use access::{Foreign, Names, Token, bearer, same};
pub use body::{Body, Sender, pieces};
pub use limits::Limits;
pub use listener::{Duplex, ListenError, Listener, Stream};
pub use memory::{Held, Memory, ReadError};
pub use metrics::{OPEN_METRICS, OpenMetrics};
pub use origin::{preflight, readable};
pub use places::{Client, Connection, Places, lock, network};
pub use reply::{closing, json, plain, reply};
pub use serve::{accept, serve};
pub use surrogates::replace_lone_surrogates;
#[cfg(feature = "tls")]
pub use tls::TlsError;
