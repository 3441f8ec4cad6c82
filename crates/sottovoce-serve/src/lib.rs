//! A memory in front of a model server: clients that speak to Ollama or to OpenAI keep speaking to the same address, and
//! what was said in earlier sessions joins their prompts.
//!
//! A [`Hub`] opens the conversations. [`listen`] binds an address, and [`serve`] answers until it is told to stop. The
//! path of a request names its conversation: `/s/kitchen/api/chat` belongs to the scope `named/kitchen`.
//!
//! A request is sealed before it is forwarded, and is forwarded as the client wrote it except for the text that memory adds.
//! Neither logs nor errors hold conversation text.

mod access;
mod answer;
mod forward;
mod handler;
mod hub;
mod memory;
mod open_scope;
mod receipt;
mod record;
mod reply;
mod request;
mod route;
mod server;
mod session;
mod time_line;

pub use access::{Access, KeysError};
pub use hub::Hub;
pub use server::{ListenError, Listening, MoreMetrics, listen, serve, serve_health};
pub use sottovoce_net::{Limits, OpenMetrics};
