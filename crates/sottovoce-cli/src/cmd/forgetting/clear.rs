//! `sottovoce clear`

use std::sync::Arc;

use serde::Serialize;
use sottovoce::Conversation;

use crate::cmd::memory::stats::moment;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Undoes the last clear; repeated, each earlier one
    #[arg(long)]
    pub(crate) undo: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cleared {
    scope: String,
    /// The time up to which the context is cleared; none if it is not.
    cleared_at: Option<jiff::Timestamp>,
}

pub(crate) async fn run(session: &Session, args: &Args) -> Outcome {
    let config = session.config()?;
    let store = session.store_or_make(&config).await?;
    obey(session, &session.conversation(&config, Arc::new(store))?, args).await?;
    Ok(Exit::Done)
}

/// Runs the command in an open conversation.
pub(crate) async fn obey(
    session: &Session,
    conversation: &Conversation,
    args: &Args,
) -> Result<(), Failure> {
    if !args.undo {
        return clear(session, conversation).await;
    }
    let undone = conversation.undo_clear().await?;
    let cleared_at = conversation.store().profile().await?.cleared.map(|cleared| cleared.at);
    if session.json {
        output::json(&Cleared { scope: session.scope.to_string(), cleared_at })?;
        return Ok(());
    }
    output::note(&match (undone, cleared_at) {
        (false, _) => format!("the context of {} is not cleared", session.scope),
        (true, None) => "undid the clear; everything is context again".to_owned(),
        (true, Some(at)) => {
            format!("undid the last clear; the context begins after {}", moment(at))
        }
    });
    Ok(())
}

/// Clears the context of an open conversation.
pub(crate) async fn clear(session: &Session, conversation: &Conversation) -> Result<(), Failure> {
    let profile = conversation.clear().await?;
    let cleared_at = profile.cleared.map(|cleared| cleared.at);
    if session.json {
        output::json(&Cleared { scope: session.scope.to_string(), cleared_at })?;
    } else {
        let at = cleared_at.map_or_else(String::new, moment);
        output::note(&format!(
            "cleared the context of {} at {at}; nothing was deleted, and `clear --undo` undoes it",
            session.scope
        ));
    }
    Ok(())
}
