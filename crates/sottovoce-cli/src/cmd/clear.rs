//! `sottovoce clear`

use sottovoce::Conversation;

use crate::exit::Outcome;
use crate::output::{moment, object};
use crate::session::Session;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Undoes the last clear; repeated, each earlier one
    #[arg(long)]
    pub(crate) undo: bool,
}

/// Runs the command in an open conversation.
pub(crate) async fn obey(session: &Session, conversation: &Conversation, args: &Args) -> Outcome {
    let undone = match args.undo {
        true => conversation.undo_clear().await?,
        false => conversation.clear().await.map(|_| false)?,
    };
    let cleared_at = conversation.store().profile().await?.cleared.map(|cleared| cleared.at);
    let scope = &session.scope;
    let row = object!("scope": scope.to_string(), "clearedAt": cleared_at);
    session.tell(row, || match (args.undo, undone, cleared_at) {
        (false, _, at) => format!(
            "cleared {scope} at {}; nothing was deleted, and `clear --undo` undoes it",
            at.map_or_else(String::new, moment)
        ),
        (true, false, _) => format!("{scope} is not cleared"),
        (true, true, None) => "undid the clear; prompts may hold everything again".to_owned(),
        (true, true, Some(at)) => {
            format!("undid the last clear; prompts begin after {}", moment(at))
        }
    })
}
