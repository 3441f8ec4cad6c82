//! `sottovoce team invite`

use sottovoce::Scope;
use sottovoce_team::Role;

use crate::cli::whose;
use crate::cmd::share::team::link::Target;
use crate::cmd::share::team::{LevelArg, Which, teams};
use crate::exit::{Exit, Outcome};
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce team invite plans --to link.txt
  sottovoce team invite plans budget --may read --days 7
  sottovoce team invite --role admin                       into the team, and no conversation yet

The link holds the keys of these conversations: give it to nobody but the one who is invited, not over the server itself.";

/// Makes a link that lets one new member into the team and these conversations
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The conversations that the member gets
    #[arg(value_name = "CONVERSATION", value_parser = whose::scope)]
    conversations: Vec<Scope>,

    /// What the member may do with them
    #[arg(long, value_name = "LEVEL", default_value = "write")]
    may: LevelArg,

    /// The member's role in the team
    #[arg(long, value_name = "ROLE", default_value = "member")]
    role: RoleArg,

    /// After how many days the link expires, at most 30
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=30))]
    days: u64,

    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    which: Which,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum RoleArg {
    /// Uses what is granted, and shares own conversations
    Member,
    /// Also lets members in and shuts them out
    Admin,
    /// Also lets owners in
    Owner,
}

impl From<RoleArg> for Role {
    fn from(role: RoleArg) -> Self {
        match role {
            RoleArg::Member => Self::Member,
            RoleArg::Admin => Self::Admin,
            RoleArg::Owner => Self::Owner,
        }
    }
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    args.target.check(&config)?;
    let (as_what, seconds) = ((args.role.into(), args.may.into()), Some(args.days * 24 * 3600));
    let team = args.which.team.as_deref();
    let link = teams(session)?.invite(team, &args.conversations, as_what, seconds).await?;
    let whose = "the link lets in one member, once: give it to nobody else";
    args.target.put(session, &config, &link, whose)?;
    Ok(Exit::Done)
}
