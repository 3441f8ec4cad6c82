//! The contexts of a [`sottovoce`] store, as a server of the [Model Context Protocol](https://modelcontextprotocol.io).
//!
//! A [`Hub`] holds what all clients share; a [`Server`] answers one of them. [`stdio::serve`] talks to the client that
//! started the process, [`http::serve`] to those that connect. Both speak the current revision of the protocol,
//! 2026-07-28, and those before it that begin with a handshake.
//!
//! Nothing is written to standard output but the protocol, and nobody's words to any log.

// What the newest revision of the protocol has put aside, the revisions before it still need.
#![allow(deprecated)]

mod access;
mod chat;
mod completion;
mod fault;
mod hub;
mod notices;
mod page;
mod prompts;
mod resources;
mod sampling;
mod schema;
mod server;
mod shape;
mod tool;
mod transport;
mod upkeep;

pub use hub::Hub;
pub use server::Server;
pub use transport::{http, stdio};
