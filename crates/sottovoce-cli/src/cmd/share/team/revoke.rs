//! `sottovoce team revoke`

use sottovoce::Scope;

use crate::cli::whose;
use crate::cmd::share::team::link::Target;
use crate::cmd::share::team::{Which, teams};
use crate::exit::{Exit, Outcome};
use crate::output;
use crate::session::Session;

const AFTER_HELP: &str = "\
Examples:
  sottovoce team revoke Ben                        out of the team, at once
  sottovoce team revoke Ben plans --to link.txt    out of one conversation

What the member has read stays with the member. The others need the new link, which holds the new key.";

/// Shuts a member out of the team, or out of one conversation, and gives what is shared a new key
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
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

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    args.target.check(&config)?;
    let teams = teams(session)?;
    let from = match &args.conversation {
        Some(conversation) => conversation.to_string(),
        None => "the team".to_owned(),
    };
    if !args.yes {
        session.check_attended("shut a member out, and the others need a new link")?;
        let question = format!("Shut {} out of {from}? The others need a new link.", args.member);
        if !output::confirmed(&output::one_line(&question))? {
            output::note("nothing was changed");
            return Ok(Exit::Done);
        }
    }
    let team = args.which.team.as_deref();
    let link = teams.revoke(team, &args.member, args.conversation.as_ref()).await?;
    output::note(&output::one_line(&format!("{} is shut out of {from}", args.member)));
    if let Some(link) = link {
        let whose =
            "give the new link to the other members, who accept it with `sottovoce team join`";
        args.target.put(session, &config, &link, whose)?;
    }
    Ok(Exit::Done)
}
