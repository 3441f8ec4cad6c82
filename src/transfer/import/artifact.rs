//! Artifacts of another system: large data beside a conversation's messages.

use std::collections::HashSet;
use std::io::Read;

use sha2::{Digest, Sha256};

use crate::crypto::fingerprint;
use crate::error::{Error, Result};
use crate::store::file_store::blocking;
use crate::store::folder::artifact_contents::hex;
use crate::store::{
    ArtifactKind, ArtifactStore, ConversationStore, FileConversationStore, NewArtifact, Profile,
};
use crate::transfer::import::{Refusal, RefusalReason};

/// The bytes that are read at once.
const PIECE: usize = 1 << 16;

/// An artifact as another system has it. Its contents are read while it is added, and never held whole.
pub struct ImportedArtifact {
    /// Its name, kind and metadata.
    pub artifact: NewArtifact,
    /// The file that its contents are in.
    pub file: String,
    id: String,
    open: OpenContents,
}

/// Opens the contents of an artifact, which are read twice or more. An [`Error::Io`] or [`Error::NotPlain`] refuses this
/// artifact alone.
pub type OpenContents = Box<dyn Fn() -> Result<Box<dyn Read + Send>> + Send + Sync>;

impl ImportedArtifact {
    /// An artifact whose system tells it apart by `id` within that conversation. `file` names it in reports.
    pub fn new(
        (system, conversation, id): (&str, &str, &str),
        artifact: NewArtifact,
        file: String,
        open: OpenContents,
    ) -> Self {
        let items = ["sottovoce/v1 artifact", system, conversation, id].map(str::as_bytes);
        // Always the same, so that an artifact that was deleted here does not come back.
        let id = format!("{:032x}", u128::from_be_bytes(fingerprint(&items)));
        Self { artifact, file, id, open }
    }

    fn open(&self) -> Result<Result<Box<dyn Read + Send>, RefusalReason>> {
        (self.open)().map(Ok).or_else(|error| RefusalReason::for_read_error(error).map(Err))
    }

    /// Adds it under its own id. Returns whether it is new.
    async fn keep(&self, store: &FileConversationStore) -> Result<Result<bool, RefusalReason>> {
        let under_its_id = self.artifact.clone().with_id(self.id.clone());
        // An add that was killed leaves contents that block its id until a repair. A second try uses a random id.
        for artifact in [under_its_id, self.artifact.clone()] {
            let content = match self.open()? {
                Ok(content) => content,
                Err(reason) => return Ok(Err(reason)),
            };
            match store.add_artifact(artifact, content).await {
                Ok(added) => return Ok(Ok(!added.was_there)),
                Err(Error::Damaged { .. }) => {}
                Err(error) => return RefusalReason::for_store_error(&error).map(Err).ok_or(error),
            }
        }
        Ok(Err(RefusalReason::Unstorable(
            "leftover contents are in its place; a repair of the store removes them",
        )))
    }

    fn sha256(&self) -> Result<Result<String, RefusalReason>> {
        let mut content = match self.open()? {
            Ok(content) => content,
            Err(reason) => return Ok(Err(reason)),
        };
        let (mut digest, mut piece) = (Sha256::new(), zeroize::Zeroizing::new(vec![0; PIECE]));
        loop {
            match content.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => digest.update(piece.get(..read).unwrap_or_default()),
                Err(error) => return Ok(Err(RefusalReason::Unreadable(error.kind()))),
            }
        }
        Ok(Ok(hex(&digest.finalize())))
    }
}

debug_shows!(ImportedArtifact: file);

/// Counts the artifacts that an import would add, and refuses those that cannot be read.
pub(super) async fn look(
    store: &FileConversationStore,
    artifacts: Vec<ImportedArtifact>,
    refused: &mut Vec<Refusal>,
) -> Result<usize> {
    let profile = store.profile().await?;
    let (new, mut found) = blocking(move || count(&profile, artifacts)).await?;
    refused.append(&mut found);
    Ok(new)
}

fn count(profile: &Profile, artifacts: Vec<ImportedArtifact>) -> Result<(usize, Vec<Refusal>)> {
    let (mut seen, mut refused) = (HashSet::new(), Vec::new());
    for artifact in missing(profile, artifacts) {
        match artifact.sha256()? {
            // Tool results are not shared: each belongs to one message.
            Ok(_) if artifact.artifact.kind == ArtifactKind::ToolResult => {
                seen.insert(artifact.id.clone());
            }
            Ok(sha256) if profile.listed_artifacts().all(|(_, known)| known != sha256) => {
                seen.insert(sha256);
            }
            Ok(_) => {}
            Err(reason) => refused.push(Refusal::new(artifact.file, reason)),
        }
    }
    Ok((seen.len(), refused))
}

/// Adds the artifacts that the store neither has nor had, and returns how many. An artifact that cannot be added is
/// refused; the others are added.
pub(super) async fn keep(
    store: &FileConversationStore,
    artifacts: Vec<ImportedArtifact>,
    refused: &mut Vec<Refusal>,
) -> Result<usize> {
    if artifacts.is_empty() {
        return Ok(0);
    }
    let profile = store.profile().await?;
    let mut added = 0;
    for artifact in missing(&profile, artifacts) {
        match artifact.keep(store).await? {
            Ok(is_new) => added += usize::from(is_new),
            Err(reason) => refused.push(Refusal::new(artifact.file, reason)),
        }
    }
    Ok(added)
}

fn missing(
    profile: &Profile,
    artifacts: Vec<ImportedArtifact>,
) -> impl Iterator<Item = ImportedArtifact> {
    artifacts.into_iter().filter(|artifact| !profile.has_had_artifact(&artifact.id))
}
