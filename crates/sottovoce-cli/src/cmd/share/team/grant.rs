//! `sottovoce team grant`

use sottovoce::Scope;

use crate::cli::whose;
use crate::cmd::share::team::link::Target;
use crate::cmd::share::team::{LevelArg, teams};
use crate::exit::{Exit, Outcome};
use crate::session::Session;

/// Grants a conversation to a member, and makes the link that the member needs for it
///
/// The link holds the conversation's key, and opens nothing for anybody but members.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The member's name, or the id that `sottovoce team members` shows
    member: String,

    /// The conversation
    #[arg(value_name = "CONVERSATION", value_parser = whose::scope)]
    conversation: Scope,

    /// What the member may do with it
    #[arg(long, value_name = "LEVEL", default_value = "write")]
    may: LevelArg,

    #[command(flatten)]
    target: Target,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    args.target.check(&config)?;
    let link = teams(session)?.grant(&args.member, &args.conversation, args.may.into()).await?;
    let whose = "give the link to this member, who accepts it with `sottovoce team join`";
    args.target.put(session, &config, &link, whose)?;
    Ok(Exit::Done)
}
