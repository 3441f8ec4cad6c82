//! Conversations that a store shares with the members of a team, over a server that cannot read them.
//!
//! The store stays the place where everything is read and written: a turn never waits for the server. What is said in a shared
//! conversation is sealed on this device with a key that members give each other in links, appended to the server's log, and
//! stored by every other member who asks for what is new. The server is that of the crate `sottovoce-http`.

mod artifact;
mod contents;
mod export;
mod link;
mod members;
mod pull;
mod push;
mod server;
mod settings;
mod state;
mod status;
mod teams;
mod withheld;

pub use artifact::FetchedArtifact;
pub use export::Exported;
pub use link::Link;
pub use members::{Joined, MemberStatus};
pub use status::{SharedStatus, TeamStatus};
pub use teams::Teams;

/// What a member may do.
pub use sottovoce_team_api::{Level, Role};
