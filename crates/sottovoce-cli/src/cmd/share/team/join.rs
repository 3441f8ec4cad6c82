//! `sottovoce team join`

use serde::Serialize;

use crate::cmd::share::team::{link, new_teams};
use crate::exit::{Exit, Outcome};
use crate::output;
use crate::session::Session;

/// Accepts a link: becomes a member of its team, or gets more of its conversations
///
/// Each conversation becomes a named one of this store. One that has the same name already stays as it is: the shared one gets a
/// number.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The link, a file with it, or `-` for standard input
    #[arg(value_name = "FILE|LINK|-")]
    link: String,

    /// Your name, as the members see it; the user's name on this machine unless given
    #[arg(long = "as", value_name = "NAME")]
    called: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    team: &'a str,
    is_new: bool,
    conversations: Vec<String>,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let link = link::read(&args.link)?;
    let called = args.called.unwrap_or_else(link::user_name);
    let joined = new_teams(session)?.join(&link, &called).await?;
    let conversations: Vec<String> = joined.conversations.iter().map(ToString::to_string).collect();
    if session.json {
        output::json(&Row { team: &joined.team, is_new: joined.is_new, conversations })?;
        return Ok(Exit::Done);
    }
    let welcome = match joined.is_new {
        true => format!("joined the team {} as {called}", joined.team),
        false => format!("the link of the team {} is accepted", joined.team),
    };
    output::note(&output::one_line(&welcome));
    for conversation in conversations {
        output::note(&format!("shared: {}", output::one_line(&conversation)));
    }
    output::note("`sottovoce team sync` brings what was written");
    Ok(Exit::Done)
}
