//! `sottovoce team share`

use sottovoce::Scope;

use crate::cli::whose;
use crate::cmd::share::team::{Which, teams};
use crate::exit::{Exit, Outcome};
use crate::output;
use crate::session::Session;

/// Shares a named conversation: everything in it, and what is said from now on
///
/// Nobody but you can read it before you invite others. Sends nothing yet.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The conversation, such as plans or named/plans
    #[arg(value_name = "CONVERSATION", value_parser = whose::scope)]
    conversation: Scope,

    #[command(flatten)]
    which: Which,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    teams(session)?.share(args.which.team.as_deref(), &args.conversation).await?;
    output::note(&format!(
        "{} is shared with the next `sottovoce team sync`; `sottovoce team invite` lets others in",
        args.conversation
    ));
    Ok(Exit::Done)
}
