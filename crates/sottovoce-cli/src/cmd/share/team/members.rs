//! `sottovoce team members`, `invite`, `grant` and `revoke`

use sottovoce::Scope;
use sottovoce_team::Role;

use crate::cli::whose;
use crate::cmd::share::Target;
use crate::cmd::share::team::link;
use crate::cmd::share::team::{LevelArg, Which, level_name, teams};
use crate::exit::{Exit, Outcome};
use crate::output::table::{self, Cell};
use crate::output::{self, DIM, object};
use crate::session::Session;

/// Lists the members, or what each may do with a conversation
#[derive(Debug, clap::Args)]
pub(super) struct MembersArgs {
    /// The conversation
    #[arg(value_name = "CONVERSATION", value_parser = whose::scope)]
    conversation: Option<Scope>,

    #[command(flatten)]
    which: Which,
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::Member => "member",
        Role::Admin => "admin",
        Role::Owner => "owner",
    }
}

pub(super) async fn list(session: &Session, args: MembersArgs) -> Outcome {
    let teams = teams(session)?;
    if let Some(conversation) = &args.conversation {
        let grants = teams.grants(conversation).await?;
        let grants = grants.iter().map(|(member, level)| (member, level_name(Some(*level))));
        if session.json {
            for (member, may) in grants {
                output::json(&object!("member": member, "may": may))?;
            }
            return Ok(Exit::Done);
        }
        let cells = grants.map(|(member, may)| [Cell::new(member).at_most(60), Cell::new(may)]);
        table::show(["member", "may"], cells.collect())?;
        return Ok(Exit::Done);
    }
    let members = teams.members(args.which.team.as_deref()).await?;
    if session.json {
        for member in &members {
            output::json(&object!(
                "id": member.id, "name": member.name, "role": role_name(member.role),
                "devices": member.devices, "own": member.is_own,
            ))?;
        }
        return Ok(Exit::Done);
    }
    let cells = members.iter().map(|member| {
        let name = match (&member.name, member.is_own) {
            (Some(name), true) => format!("{name} (you)"),
            (Some(name), false) => name.clone(),
            (None, _) => "without a name".to_owned(),
        };
        [
            Cell::new(&name).at_most(60),
            Cell::new(role_name(member.role)),
            Cell::number(member.devices as u64),
            Cell::new(&member.id).style(DIM),
        ]
    });
    table::show(["member", "role", "devices", "id"], cells.collect())?;
    Ok(Exit::Done)
}

const INVITE_HELP: &str = "\
Examples:
  sottovoce team invite plans --to link.txt
  sottovoce team invite plans budget --may read --days 7
  sottovoce team invite --role admin                       into the team, and no conversation yet

The link holds the keys of these conversations: give it to nobody but the one who is invited, not over the server itself.";

/// Makes a link that lets one new member into the team and these conversations
#[derive(Debug, clap::Args)]
#[command(after_help = INVITE_HELP)]
pub(super) struct InviteArgs {
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

pub(super) async fn invite(session: &Session, args: InviteArgs) -> Outcome {
    let config = session.config()?;
    args.target.check(&config)?;
    let (as_what, seconds) = ((args.role.into(), args.may.into()), Some(args.days * 24 * 3600));
    let team = args.which.team.as_deref();
    let link = teams(session)?.invite(team, &args.conversations, as_what, seconds).await?;
    let whose = "the link lets in one member, once: give it to nobody else";
    link::put(&args.target, session, &config, &link, whose)?;
    Ok(Exit::Done)
}

/// Grants a conversation to a member, and makes the link that the member needs for it
///
/// The link holds the conversation's key, and opens nothing for anybody but members.
#[derive(Debug, clap::Args)]
pub(super) struct GrantArgs {
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

pub(super) async fn grant(session: &Session, args: GrantArgs) -> Outcome {
    let config = session.config()?;
    args.target.check(&config)?;
    let link = teams(session)?.grant(&args.member, &args.conversation, args.may.into()).await?;
    let whose = "give the link to this member, who accepts it with `sottovoce team join`";
    link::put(&args.target, session, &config, &link, whose)?;
    Ok(Exit::Done)
}

const REVOKE_HELP: &str = "\
Examples:
  sottovoce team revoke Ben                        out of the team, at once
  sottovoce team revoke Ben plans --to link.txt    out of one conversation

What the member has read stays with the member. The others need the new link, which holds the new key.";

/// Shuts a member out of the team, or out of one conversation, and gives what is shared a new key
#[derive(Debug, clap::Args)]
#[command(after_help = REVOKE_HELP)]
pub(super) struct RevokeArgs {
    /// The member's name, or the id that `sottovoce team members` shows
    member: String,

    /// The conversation; all of them, and the team, unless given
    #[arg(value_name = "CONVERSATION", value_parser = whose::scope)]
    conversation: Option<Scope>,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,

    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    which: Which,
}

pub(super) async fn revoke(session: &Session, args: RevokeArgs) -> Outcome {
    let config = session.config()?;
    args.target.check(&config)?;
    let teams = teams(session)?;
    let from = match &args.conversation {
        Some(conversation) => conversation.to_string(),
        None => "the team".to_owned(),
    };
    let question = format!("Shut {} out of {from}? The others need a new link.", args.member);
    let question = output::one_line(&question);
    let deed = "shut a member out, and the others need a new link";
    if !session.agrees(args.yes, deed, &question, "nothing was changed", async || Ok(())).await? {
        return Ok(Exit::Done);
    }
    let team = args.which.team.as_deref();
    let link = teams.revoke(team, &args.member, args.conversation.as_ref()).await?;
    output::note(&output::one_line(&format!("{} is shut out of {from}", args.member)));
    if let Some(link) = link {
        let whose =
            "give the new link to the other members, who accept it with `sottovoce team join`";
        link::put(&args.target, session, &config, &link, whose)?;
    }
    Ok(Exit::Done)
}
