//! `sottovoce artifact list`

use sottovoce::FileConversationStore;
use sottovoce::store::{Artifact, ArtifactStore};

use crate::cmd::memory::stats::{bytes, moment};
use crate::exit::{Exit, Outcome};
use crate::output::table;
use crate::output::table::Cell;
use crate::output::{self, BOLD, DIM};
use crate::session::Session;

/// Shown digits of an id.
pub(crate) const SHORT: usize = 8;

pub(super) async fn run(session: &Session) -> Outcome {
    let config = session.config()?;
    let store = session.store_or_empty(&config).await?;
    list(session, &store).await
}

/// Lists the artifacts of an open conversation.
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
        let names = ["id", "type", "size", "lines", "added", "name"];
        table::show(names, artifacts.iter().map(cells).collect())?;
    }
    Ok(if findings.is_empty() { Exit::Done } else { Exit::Problems })
}

fn cells(artifact: &Artifact) -> [Cell; 6] {
    let lines = artifact.lines.map_or_else(|| "binary".to_owned(), |lines| lines.to_string());
    let day = artifact.created_at.strftime("%Y-%m-%d").to_string();
    [
        Cell::new(short(&artifact.id)).style(BOLD),
        Cell::new(&artifact.kind.to_string()).at_most(14),
        Cell::new(&bytes(artifact.size)),
        Cell::new(&lines),
        Cell::new(&day).style(DIM),
        Cell::new(&artifact.name).at_most(26),
    ]
}

/// One line for an artifact.
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

/// The abbreviation of an id.
pub(crate) fn short(id: &str) -> &str {
    id.get(..SHORT).unwrap_or(id)
}
