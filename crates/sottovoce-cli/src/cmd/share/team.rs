//! `sottovoce team`

pub(crate) mod artifacts;
mod create;
mod export;
mod grant;
mod invite;
mod join;
mod leave;
mod link;
mod members;
mod revoke;
#[cfg(feature = "team-server")]
mod serve;
mod share;
mod status;
mod sync;
mod unshare;

use std::sync::Arc;

use sottovoce::Error;
use sottovoce::config::OpenConversations;
use sottovoce_team::{Level, TeamError, Teams};

use crate::cmd::share::stores;
use crate::exit::{Failure, Outcome};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce team serve                                  a server on this machine, and the link that begins a team
  sottovoce team create LINK Acme --as Anna
  sottovoce team share plans                            the conversation named/plans
  sottovoce team sync                                   publishes it; `up`, `serve`, `wyoming` and `mcp --http` do so by themselves
  sottovoce team invite plans --to link.txt             the link for one new member, to write in plans
  sottovoce team join link.txt --as Ben                 on the member's device
  sottovoce team members
  sottovoce team revoke Ben                             shuts Ben out, and gives what is shared a new key

Everything is sealed on the members' devices. The server sees who is a member, when something was written and how long it is, and \
nothing that was said. What one member forgets is forgotten by all.";

/// Shares named conversations with a team, over a server that cannot read them
///
/// Only named conversations are ever shared, each by the wish of the member that has it. They stay in this store and are read and
/// written there, also without the server.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    #[cfg(feature = "team-server")]
    Serve(serve::Args),
    Create(create::Args),
    Share(share::Args),
    Unshare(unshare::Args),
    Invite(invite::Args),
    Join(join::Args),
    Sync(sync::Args),
    /// Shows the teams, what is shared with them, and what was not published yet
    ///
    /// Asks no server: what members have written since the last sync is not known.
    Status,
    Members(members::Args),
    Grant(grant::Args),
    Revoke(revoke::Args),
    Leave(leave::Args),
    Export(export::Args),
}

impl Args {
    /// Whether it goes on until it is stopped.
    pub(crate) fn is_server(&self) -> bool {
        match &self.verb {
            #[cfg(feature = "team-server")]
            Verb::Serve(_) => true,
            Verb::Sync(args) => args.is_watching(),
            _ => false,
        }
    }
}

pub(crate) async fn run(session: &Session, args: Args) -> Outcome {
    match args.verb {
        #[cfg(feature = "team-server")]
        Verb::Serve(args) => serve::run(session, args).await,
        Verb::Create(args) => create::run(session, args).await,
        Verb::Share(args) => share::run(session, args).await,
        Verb::Unshare(args) => unshare::run(session, args).await,
        Verb::Invite(args) => invite::run(session, args).await,
        Verb::Join(args) => join::run(session, args).await,
        Verb::Sync(args) => sync::run(session, args).await,
        Verb::Status => status::run(session).await,
        Verb::Members(args) => members::run(session, args).await,
        Verb::Grant(args) => grant::run(session, args).await,
        Verb::Revoke(args) => revoke::run(session, args).await,
        Verb::Leave(args) => leave::run(session, args).await,
        Verb::Export(args) => export::run(session, args).await,
    }
}

/// Which team a command is about.
#[derive(Debug, clap::Args)]
struct Which {
    /// The team, if this store is in several
    #[arg(long, value_name = "NAME")]
    team: Option<String>,
}

/// What a member may do with a conversation, as people write it.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum LevelArg {
    /// Read what the others write
    Read,
    /// Also write and forget
    Write,
    /// Also let others in and shut them out
    Manage,
}

impl From<LevelArg> for Level {
    fn from(level: LevelArg) -> Self {
        match level {
            LevelArg::Read => Self::Read,
            LevelArg::Write => Self::Write,
            LevelArg::Manage => Self::Manage,
        }
    }
}

fn level_name(level: Option<Level>) -> &'static str {
    match level {
        Some(Level::Read) => "read",
        Some(Level::Write) => "write",
        Some(Level::Manage) => "manage",
        None => "no access",
    }
}

/// The store's teams. Never makes a key: before the first use the store is in none.
fn teams(session: &Session) -> Result<Teams, Failure> {
    let config = session.config()?;
    let keys = match session.keys(&config) {
        Err(Failure::Library(Error::NoKey | Error::PlaceholderKey)) => {
            return Err(TeamError::NoTeam.into());
        }
        keys => keys?,
    };
    Ok(of(&OpenConversations::new(config, keys, session.clock())?))
}

/// The teams of a store. Makes the key on first use.
fn new_teams(session: &Session) -> Result<Teams, Failure> {
    let config = session.config()?;
    let keys = session.stores_or_make(&config)?.keys();
    Ok(of(&OpenConversations::new(config, keys, session.clock())?))
}

/// The teams with which these conversations are shared.
pub(crate) fn of(conversations: &Arc<OpenConversations>) -> Teams {
    let clock = Arc::clone(conversations.clock());
    Teams::new(stores::stores(Arc::clone(conversations)), clock)
}
