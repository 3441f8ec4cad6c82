//! A [Model Context Protocol](https://modelcontextprotocol.io) server for the contexts of a [`sottovoce`] store.
//!
//! A [`Hub`] holds what all clients share. A [`Server`] answers one client. [`stdio::serve`] talks to the client that
//! started the process, [`http::serve`] to clients that connect. Both speak the current revision of the protocol,
//! 2026-07-28, and the earlier ones that begin with a handshake.
//!
//! Standard output carries only the protocol. Logs never hold conversation text.

// Earlier revisions of the protocol need features that the newest one deprecates.
#![allow(deprecated)]

mod access;
mod completion;
mod fault;
mod hub;
mod notices;
mod page;
mod prompts;
mod resources;
mod running;
mod sampling;
mod schema;
mod server;
mod shape;
mod tool;
mod transport;
mod upkeep;

pub use hub::Hub;
pub use running::{Serving, serve_http, serve_stdio};
pub use server::Server;
pub use transport::{http, stdio};
