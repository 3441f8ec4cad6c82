//! `sottovoce team members`, `invite`, `grant` and `revoke`

use sottovoce::Scope;
use sottovoce_team::{Level, MemberStatus, Role};

use crate::cli::whose;
use crate::cmd::share::Target;
use crate::cmd::share::team::{LEVELS, Which, link, name_of, spelt, teams};
use crate::exit::{Exit, Outcome};
use crate::output::table::Cell;
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

pub(super) async fn list(session: &Session, args: MembersArgs) -> Outcome {
    let teams = teams(session)?;
    if let Some(conversation) = &args.conversation {
        let grants = teams.grants(conversation).await?;
        let row = |(member, level): &(_, Level)| object!("member": member, "may": level);
        session.list(&grants, row, ["member", "may"], |(member, level)| {
            [Cell::new(member).at_most(60), Cell::new(&name_of(Some(level)))]
        })?;
        return Ok(Exit::Done);
    }
    let members = teams.members(args.which.team.as_deref()).await?;
    let row = |member: &MemberStatus| {
        object!(
            "id": member.id, "name": member.name, "role": member.role,
            "devices": member.devices, "own": member.is_own,
        )
    };
    session.list(&members, row, ["member", "role", "devices", "id"], |member| {
        let name = member.name.as_deref().unwrap_or("without a name");
        let you = if member.is_own && member.name.is_some() { " (you)" } else { "" };
        [
            Cell::new(&format!("{name}{you}")).at_most(60),
            Cell::new(&name_of(Some(member.role))),
            Cell::number(member.devices as u64),
            Cell::new(&member.id).style(DIM),
        ]
    })?;
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

    /// What the member may do with them: read, also write and forget, or also manage who else may
    #[arg(long, value_name = "LEVEL", default_value = "write", value_parser = spelt::<Level>(LEVELS))]
    may: Level,

    /// The member's role in the team: an admin also lets members in and shuts them out, an owner also lets owners in
    #[arg(long, value_name = "ROLE", default_value = "member", value_parser = spelt::<Role>(["member", "admin", "owner"]))]
    role: Role,

    /// After how many days the link expires, at most 30
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=30))]
    days: u64,

    #[command(flatten)]
    target: Target,

    #[command(flatten)]
    which: Which,
}

pub(super) async fn invite(session: &Session, args: InviteArgs) -> Outcome {
    args.target.check(session)?;
    let (as_what, seconds) = ((args.role, args.may), Some(args.days * 24 * 3600));
    let team = args.which.team.as_deref();
    let link = teams(session)?.invite(team, &args.conversations, as_what, seconds).await?;
    let whose = "the link lets in one member, once: give it to nobody else";
    link::put(&args.target, session, &link, whose)
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

    /// What the member may do with it: read, also write and forget, or also manage who else may
    #[arg(long, value_name = "LEVEL", default_value = "write", value_parser = spelt::<Level>(LEVELS))]
    may: Level,

    #[command(flatten)]
    target: Target,
}

pub(super) async fn grant(session: &Session, args: GrantArgs) -> Outcome {
    args.target.check(session)?;
    let link = teams(session)?.grant(&args.member, &args.conversation, args.may).await?;
    let whose = "give the link to this member, who accepts it with `sottovoce team join`";
    link::put(&args.target, session, &link, whose)
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
    args.target.check(session)?;
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
    let Some(link) = link else { return Ok(Exit::Done) };
    let whose = "give the new link to the other members, who accept it with `sottovoce team join`";
    link::put(&args.target, session, &link, whose)
}
