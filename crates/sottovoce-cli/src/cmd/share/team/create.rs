//! `sottovoce team create`

use serde::Serialize;

use crate::cmd::share::team::{link, new_teams};
use crate::exit::{Exit, Outcome};
use crate::output;
use crate::session::Session;

/// Begins a team at a server, with the link that `sottovoce team serve` has shown
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The link, a file with it, or `-` for standard input
    #[arg(value_name = "FILE|LINK|-")]
    link: String,

    /// The team's name, as members see it
    name: String,

    /// Your name, as the members see it; the user's name on this machine unless given
    #[arg(long = "as", value_name = "NAME")]
    called: Option<String>,
}

#[derive(Serialize)]
struct Row<'a> {
    team: &'a str,
    address: &'a str,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let link = link::read(&args.link)?;
    let called = args.called.unwrap_or_else(link::user_name);
    new_teams(session)?.create(&link, &args.name, &called).await?;
    if session.json {
        output::json(&Row { team: &args.name, address: link.address() })?;
    } else {
        output::note(&output::one_line(&format!(
            "the team {} is there, and {called} owns it",
            args.name
        )));
        output::note(
            "`sottovoce team share NAME` shares a conversation; `sottovoce team invite NAME` lets somebody in",
        );
    }
    Ok(Exit::Done)
}
