//! `sottovoce artifact list`

use sottovoce::{Artifact, ConversationStore, FileConversationStore};

use crate::cmd::stats::{bytes, moment};
use crate::exit::{Exit, Outcome};
use crate::output::{self, BOLD, DIM};
use crate::session::Session;

/// How much of an id is shown.
pub(crate) const SHORT: usize = 8;

pub(super) async fn run(session: &Session) -> Outcome {
    let config = session.config()?;
    let store = session.store_or_empty(&config).await?;
    list(session, &store).await
}

/// Lists the artifacts of a conversation that is open.
pub(crate) async fn list(session: &Session, store: &FileConversationStore) -> Outcome {
    let (artifacts, findings) = store.artifacts().await?;
    output::skipped(&findings);
    if session.json {
        artifacts.iter().try_for_each(output::json)?;
    } else if artifacts.is_empty() {
        if findings.is_empty() {
            output::note("no artifact was added to this conversation");
        }
    } else {
        output::line(format!(
            "{BOLD}{:<8}  {:<14}  {:>10}  {:>7}  {:<20}  name{BOLD:#}",
            "id", "type", "size", "lines", "added"
        ))?;
        artifacts.iter().try_for_each(|artifact| output::line(row(artifact)))?;
    }
    Ok(if findings.is_empty() { Exit::Done } else { Exit::Found })
}

/// An artifact in one line of a table.
pub(crate) fn row(artifact: &Artifact) -> String {
    let kind = output::one_line(&artifact.kind.to_string());
    let lines = artifact.lines.map_or_else(|| "binary".to_owned(), |lines| lines.to_string());
    format!(
        "{BOLD}{}{BOLD:#}  {kind:<14}  {:>10}  {lines:>7}  {DIM}{:<20}{DIM:#}  {}",
        short(&artifact.id),
        bytes(artifact.size),
        moment(artifact.created_at),
        output::one_line(&artifact.name),
    )
}

/// The beginning of an id.
pub(crate) fn short(id: &str) -> &str {
    id.get(..SHORT).unwrap_or(id)
}
