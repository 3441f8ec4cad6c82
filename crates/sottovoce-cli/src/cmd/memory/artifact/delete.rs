//! `sottovoce artifact delete`

use std::collections::BTreeSet;

use serde::Serialize;
use sottovoce::store::{ArtifactReferences, ArtifactStore, find_artifact};
use sottovoce::{Error, FileConversationStore};

use crate::cmd::memory::artifact::list::{row, short};
use crate::exit::{Exit, Failure, Outcome};
use crate::output;
use crate::session::Session;

/// How many message numbers are listed.
const NAMED: usize = 10;

/// Deletes artifacts permanently; messages that refer to them stay
///
/// Shows which messages these are, and asks for confirmation. Restoring an older backup does not bring a deleted
/// artifact back.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Their ids or abbreviations
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,

    /// Does not ask
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Deleted<'a> {
    deleted: &'a [String],
}

pub(super) async fn run(session: &Session, args: Args) -> Outcome {
    let config = session.config()?;
    let store = session.store_or_empty(&config).await?;
    let mut ids = BTreeSet::new();
    for id in &args.ids {
        ids.insert(find_artifact(&*store, id).await?);
    }
    let ids: Vec<String> = ids.into_iter().collect();
    let count = output::counted(ids.len() as u64, "artifact");
    if !args.yes {
        session.check_attended(&format!("delete {count} for ever"))?;
        show(&store, &ids).await?;
        if !output::confirmed(&format!("Really delete {count} for ever?"))? {
            output::note("nothing was deleted");
            return Ok(Exit::Done);
        }
    }
    store.delete_artifacts(&ids).await?;
    if session.json {
        output::json(&Deleted { deleted: &ids })?;
    } else {
        output::note(&format!("deleted {count} for ever"));
    }
    Ok(Exit::Done)
}

/// Shows artifacts and the messages that refer to them.
async fn show(store: &FileConversationStore, ids: &[String]) -> Result<(), Failure> {
    let references = store.artifact_references().await?;
    output::skipped(&references.unread);
    for id in ids {
        match store.open_artifact(id).await {
            Ok(Some(contents)) => output::line(row(contents.artifact()))?,
            // A damaged artifact can be deleted.
            Ok(None) | Err(Error::Damaged { .. }) => output::line(short(id))?,
            Err(error) => return Err(error.into()),
        }
        output::note(&format!("    {}", said(&references, id)));
    }
    Ok(())
}

fn said(references: &ArtifactReferences, id: &str) -> String {
    let numbers: Vec<String> =
        references.messages.get(id).into_iter().flatten().map(u64::to_string).collect();
    match numbers.len() {
        0 if references.unreferenced.iter().any(|artifact| artifact.id == id) => {
            "nothing refers to it".to_owned()
        }
        0 => "a folder, a snapshot or a summary refers to it".to_owned(),
        1 => format!("message {} refers to it", numbers.concat()),
        all => {
            let first: Vec<String> = numbers.into_iter().take(NAMED).collect();
            let more = all.checked_sub(NAMED).filter(|more| *more > 0);
            let more = more.map_or_else(String::new, |more| format!(" and {more} more"));
            format!("messages {}{more} refer to it", first.join(", "))
        }
    }
}
