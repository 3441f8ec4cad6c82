//! `sottovoce team members`

use serde::Serialize;
use sottovoce::Scope;
use sottovoce_team::{MemberStatus, Role};

use crate::cli::whose;
use crate::cmd::share::team::{Which, level_name, teams};
use crate::exit::{Exit, Outcome};
use crate::output::table::{self, Cell};
use crate::output::{self, DIM};
use crate::session::Session;

/// Lists the members, or what each may do with a conversation
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The conversation
    #[arg(value_name = "CONVERSATION", value_parser = whose::scope)]
    conversation: Option<Scope>,

    #[command(flatten)]
    which: Which,
}

#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    name: Option<&'a str>,
    role: &'static str,
    devices: usize,
    own: bool,
}

#[derive(Serialize)]
struct GrantRow<'a> {
    member: &'a str,
    may: &'static str,
}

impl<'a> Row<'a> {
    fn of(member: &'a MemberStatus) -> Self {
        let role = match member.role {
            Role::Member => "member",
            Role::Admin => "admin",
            Role::Owner => "owner",
        };
        let (name, devices, own) = (member.name.as_deref(), member.devices, member.is_own);
        Self { id: &member.id, name, role, devices, own }
    }
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let teams = teams(session)?;
    if let Some(conversation) = &args.conversation {
        let grants = teams.grants(conversation).await?;
        let rows = grants.iter().map(|(member, level)| (member, level_name(Some(*level))));
        if session.json {
            for (member, may) in rows {
                output::json(&GrantRow { member, may })?;
            }
        } else {
            let cells = rows.map(|(member, may)| [Cell::new(member).at_most(60), Cell::new(may)]);
            table::show(["member", "may"], cells.collect())?;
        }
        return Ok(Exit::Done);
    }
    let members = teams.members(args.which.team.as_deref()).await?;
    if session.json {
        for member in &members {
            output::json(&Row::of(member))?;
        }
        return Ok(Exit::Done);
    }
    let cells = members.iter().map(|member| {
        let row = Row::of(member);
        let name = match (row.name, row.own) {
            (Some(name), true) => format!("{name} (you)"),
            (Some(name), false) => name.to_owned(),
            (None, _) => "without a name".to_owned(),
        };
        [
            Cell::new(&name).at_most(60),
            Cell::new(row.role),
            Cell::number(row.devices as u64),
            Cell::new(row.id).style(DIM),
        ]
    });
    table::show(["member", "role", "devices", "id"], cells.collect())?;
    Ok(Exit::Done)
}
