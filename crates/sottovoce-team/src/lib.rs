//! Conversations that a store shares with the members of a team, over a server that cannot read them.
//!
//! The store stays the place where everything is read and written: a turn never waits for the server. What is said in a shared
//! conversation is sealed on this device with a key that members give each other in links, appended to the server's log, and
//! stored by every other member who asks for what is new. The server is that of the crate `sottovoce-team-server`.
//!
//! A host keeps [`Teams`] at work beside its turns:
//!
//! ```no_run
//! # async fn example(
//! #     conversations: std::sync::Arc<dyn sottovoce_sync::Conversations>,
//! #     clock: std::sync::Arc<dyn sottovoce::Clock>,
//! # ) -> sottovoce_team::TeamResult<()> {
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use sottovoce_sync::Background;
//! use sottovoce_team::{Link, Teams};
//!
//! let teams = Teams::new(conversations, clock);
//! let link: Link = std::fs::read_to_string("ben.link").unwrap_or_default().parse()?;
//! teams.join(&link, "Ben").await?;
//!
//! // Exchanges what is new at once when a member writes, and soon after something was said here.
//! let background = Background::new(Arc::new(teams), Duration::from_secs(60));
//! background.run(drop).await;
//! # Ok(())
//! # }
//! ```
//!
//! [`Teams::fetch_artifact`] fetches what a member has added when somebody opens it: a store asks for it through
//! [`ArtifactSource`](sottovoce::store::ArtifactSource).

mod background;
mod error;
mod export;
mod grants;
mod link;
mod log;
mod members;
mod server;
mod state;
mod status;
mod sync;
mod teams;

pub use error::{TeamError, TeamResult};
pub use export::Exported;
pub use link::Link;
pub use log::artifact::FetchedArtifact;
pub use members::{Joined, MemberStatus};
pub use status::{SharedStatus, TeamStatus};
pub use teams::Teams;

/// What a member may do.
pub use sottovoce_team_api::{Level, Role};
