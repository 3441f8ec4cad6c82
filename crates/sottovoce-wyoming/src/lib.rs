//! A conversation agent in the Wyoming protocol, as Home Assistant's voice assistants use it: a transcript comes in, and
//! the answer of a language model with a memory goes out, to be spoken.
//!
//! Each satellite or device may have a conversation of its own; see [`Rooms`]. [`listen`] takes addresses, [`serve`]
//! answers until it is told to stop.

mod access;
mod agent;
mod connection;
mod event;
mod info;
mod phrases;
mod rooms;
mod server;
mod turn;

pub use access::Access;
pub use agent::Agent;
pub use phrases::Phrases;
pub use rooms::Rooms;
pub use server::{ListenError, Listening, listen, serve};
