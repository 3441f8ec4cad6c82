//! `sottovoce team leave`

use crate::cmd::share::team::{Which, teams};
use crate::exit::{Exit, Outcome};
use crate::output;
use crate::session::Session;

/// Leaves a team. Its conversations stay in this store, and are shared with nobody any more
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,

    /// Also if the server does not answer or refuses
    #[arg(long)]
    force: bool,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    teams(session)?.leave(args.which.team.as_deref(), args.force).await?;
    output::note("left the team; what was shared stays in this store");
    Ok(Exit::Done)
}
