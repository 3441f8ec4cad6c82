//! Finds and deletes artifacts that no message refers to.

use std::collections::BTreeSet;

use indicatif::ProgressBar;
use sottovoce::store::{Artifact, ArtifactStore};
use sottovoce::{ConversationStore, FileConversationStore};

use crate::cmd::memory::artifact::list::row;
use crate::exit::Failure;
use crate::output;
use crate::session::Session;

/// What to do with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    List,
    Ask,
    Delete,
}

impl How {
    pub(super) fn of(session: &Session, args: &super::Args) -> Result<Self, Failure> {
        match (args.artifacts, args.yes) {
            (false, _) => Ok(Self::List),
            (true, true) => Ok(Self::Delete),
            (true, false) => {
                session.check_attended("delete artifacts that no message refers to")?;
                Ok(Self::Ask)
            }
        }
    }
}

/// The artifacts that no message refers to.
pub(super) struct Unused {
    artifacts: Vec<Artifact>,
    /// Whether something that may refer to them could not be read.
    is_doubtful: bool,
    pub(super) were_deleted: bool,
}

impl Unused {
    pub(super) fn is_empty(&self) -> bool {
        self.artifacts.is_empty()
    }

    pub(super) fn ids(&self) -> Vec<String> {
        self.artifacts.iter().map(|artifact| artifact.id.clone()).collect()
    }

    fn count(&self) -> String {
        output::counted(self.artifacts.len() as u64, "artifact")
    }

    /// Reports the artifacts found or deleted.
    pub(super) fn show(&self) {
        if self.is_empty() {
            return;
        }
        if self.were_deleted {
            output::note(&format!("deleted {} that no message refers to", self.count()));
            return;
        }
        output::note(&format!("no message refers to {}:", self.count()));
        self.artifacts.iter().for_each(|artifact| output::note(&format!("    {}", row(artifact))));
        match self.is_doubtful {
            true => output::warning(
                "nothing was deleted: unreadable messages may refer to them; `sottovoce verify` shows more, `sottovoce artifact delete` deletes them anyway",
            ),
            false => output::note("`sottovoce cleanup --artifacts` deletes them"),
        }
    }
}

/// Looks for them if there are any artifacts, and deletes them if asked to.
pub(super) async fn clean(
    store: &FileConversationStore,
    how: How,
    bar: &ProgressBar,
) -> Result<Unused, Failure> {
    let mut unused = find(store).await?;
    if unused.is_empty() || unused.is_doubtful || how == How::List {
        return Ok(unused);
    }
    if how == How::Ask {
        let asked = format!("Really delete {} of {} for ever?", unused.count(), store.scope());
        let is_sure = bar.suspend(|| {
            unused.artifacts.iter().try_for_each(|artifact| output::line(row(artifact)))?;
            output::confirmed(&asked)
        })?;
        if !is_sure {
            return Ok(unused);
        }
        // A message may have been added during the question.
        let still: BTreeSet<String> = find(store).await?.ids().into_iter().collect();
        unused.artifacts.retain(|artifact| still.contains(&artifact.id));
    }
    store.delete_artifacts(&unused.ids()).await?;
    unused.were_deleted = true;
    Ok(unused)
}

async fn find(store: &FileConversationStore) -> Result<Unused, Failure> {
    let nothing = Unused { artifacts: Vec::new(), is_doubtful: false, were_deleted: false };
    if store.profile().await?.artifacts().next().is_none() {
        return Ok(nothing);
    }
    let references = store.artifact_references().await?;
    let is_doubtful = !references.unread.is_empty();
    Ok(Unused { artifacts: references.unreferenced, is_doubtful, ..nothing })
}
