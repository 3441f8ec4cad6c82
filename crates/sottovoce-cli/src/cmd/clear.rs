//! `sottovoce clear`

use std::sync::Arc;

use serde::Serialize;
use sottovoce::Conversation;

use crate::cmd::stats::moment;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

#[derive(Serialize)]
struct Cleared {
    scope: String,
    cleared: Option<jiff::Timestamp>,
}

pub(crate) async fn run(session: &Session) -> Outcome {
    let config = session.config()?;
    let store = session.store_or_make(&config).await?;
    clear(session, &session.conversation(&config, Arc::new(store))?).await?;
    Ok(Exit::Done)
}

/// Clears the context of a conversation that is open.
pub(crate) async fn clear(session: &Session, conversation: &Conversation) -> Result<(), Failure> {
    let profile = conversation.clear().await?;
    let cleared = profile.cleared.map(|cleared| cleared.at);
    if session.json {
        output::json(&Cleared { scope: session.scope.to_string(), cleared })?;
    } else {
        let at = cleared.map_or_else(String::new, moment);
        output::note(&format!(
            "cleared the context of {} at {at}; nothing was deleted, and `sottovoce tail` shows it still",
            session.scope
        ));
    }
    Ok(())
}
