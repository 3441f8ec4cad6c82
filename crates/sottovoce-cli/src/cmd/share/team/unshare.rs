//! `sottovoce team unshare`

use sottovoce::Scope;

use crate::cli::whose;
use crate::cmd::share::team::teams;
use crate::exit::{Exit, Outcome};
use crate::output;
use crate::session::Session;

/// Ends the sharing of a conversation. What is in it stays in this store
///
/// The other members go on sharing it, unless it ends for all.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The conversation
    #[arg(value_name = "CONVERSATION", value_parser = whose::scope)]
    conversation: Scope,

    /// For all members: deletes the conversation at the server. What they have read stays with them
    #[arg(long)]
    for_all: bool,
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    teams(session)?.unshare(&args.conversation, args.for_all).await?;
    let conversation = &args.conversation;
    output::note(&match args.for_all {
        true => format!("{conversation} is deleted at the server, and stays in this store"),
        false => format!("{conversation} is no longer shared from here, and stays in this store"),
    });
    Ok(Exit::Done)
}
