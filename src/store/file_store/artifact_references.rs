//! Finds references to a conversation's artifacts, and artifacts without any.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use zeroize::Zeroizing;

use crate::error::Result;
use crate::message::ChatMessage;
use crate::store::file_store::FileConversationStore;
use crate::store::folder::artifact_files;
use crate::store::record::artifact::{
    Artifact, ArtifactKind, ID_LENGTH, SCHEME, artifact_references,
};
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::{ArtifactStore, ConversationStore};

/// How many numbers to read at a time.
const STEP: u64 = 4096;
/// How many bytes of a folder's tree to read at a time.
const PIECE: usize = 1 << 16;
/// Length of a reference in bytes.
const REFERENCE: usize = SCHEME.len() + ID_LENGTH;

/// References to a conversation's artifacts.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ArtifactReferences {
    /// For each artifact, the numbers of the messages that refer to it, hidden ones included.
    pub messages: BTreeMap<String, BTreeSet<u64>>,
    /// Artifacts without references, oldest first: no message, snapshot or summary refers to them, and no folder to
    /// which one of these refers.
    pub unreferenced: Vec<Artifact>,
    /// Findings about what could not be read and may refer to any artifact.
    pub unread: Vec<Finding>,
}

impl FileConversationStore {
    /// Finds the references to the conversation's artifacts in everything stored. If there are any artifacts, reads
    /// every message, some thousand at a time.
    ///
    /// # Errors
    /// What prevents reading the folder.
    pub async fn artifact_references(&self) -> Result<ArtifactReferences> {
        // List artifacts first: those that are added meanwhile are not reported as unreferenced.
        let (artifacts, mut unread) = self.artifacts().await?;
        if artifacts.is_empty() {
            return Ok(ArtifactReferences { unread, ..ArtifactReferences::default() });
        }
        let known: BTreeSet<&str> = artifacts.iter().map(|artifact| artifact.id.as_str()).collect();
        let mut messages: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        let last = self.read_tail(0).await?.last_seq;
        for first in (1..=last).step_by(STEP as usize) {
            let reading = self.read_kept(first..=last.min(first + STEP - 1)).await?;
            unread.extend(reading.skipped);
            for stored in &reading.messages {
                for id in said_of(&stored.message).filter(|id| known.contains(id)) {
                    messages.entry(id.to_owned()).or_default().insert(stored.seq);
                }
            }
        }
        let mut referred: BTreeSet<String> = messages.keys().cloned().collect();
        let (snapshots, wrong) = self.snapshots().await?;
        unread.extend(wrong);
        for snapshot in &snapshots {
            let texts = [Some(&snapshot.summary), snapshot.description.as_ref()];
            referred.extend(texts.into_iter().flatten().flat_map(|text| ids(text)));
            let said = snapshot.messages.iter().flat_map(|saved| said_of(&saved.message));
            referred.extend(said.map(str::to_owned));
        }
        for made in &self.profile().await?.summaries {
            referred.extend(ids(&made.text));
        }
        unread.extend(self.follow_folders(&artifacts, &mut referred).await?);
        let mut seen = BTreeSet::new();
        unread.retain(|finding| seen.insert((finding.to_string(), finding.seqs)));
        let unreferenced =
            artifacts.into_iter().filter(|artifact| !referred.contains(&artifact.id)).collect();
        Ok(ArtifactReferences { messages, unreferenced, unread })
    }

    /// Adds references from folders, and from folders within them. Returns what could not be read.
    async fn follow_folders(
        &self,
        artifacts: &[Artifact],
        referred: &mut BTreeSet<String>,
    ) -> Result<Vec<Finding>> {
        let mut unread = Vec::new();
        let mut folders: Vec<&Artifact> =
            artifacts.iter().filter(|artifact| artifact.kind == ArtifactKind::Folder).collect();
        loop {
            let (found, rest): (Vec<_>, Vec<_>) =
                folders.into_iter().partition(|folder| referred.contains(&folder.id));
            if found.is_empty() {
                return Ok(unread);
            }
            for folder in found {
                match self.open_artifact(&folder.id).await {
                    Ok(Some(contents)) => match in_contents(contents) {
                        Ok(ids) => referred.extend(ids),
                        Err(error) => {
                            let kind = FindingKind::Unreadable(error.kind());
                            unread.push(kind.in_file(artifact_files::FILES.place(&folder.id)));
                        }
                    },
                    // It was deleted after it was listed.
                    Ok(None) => {}
                    Err(_) => {
                        let place = artifact_files::FILES.place(&folder.id);
                        unread.push(FindingKind::Unopenable.in_file(place));
                    }
                }
            }
            folders = rest;
        }
    }
}

/// The artifacts to which a message refers, in its text or because its text was moved to them.
fn said_of(message: &ChatMessage) -> impl Iterator<Item = &str> {
    artifact_references(&message.content).chain(message.moved_to())
}

fn ids(text: &str) -> impl Iterator<Item = String> {
    artifact_references(text).map(str::to_owned)
}

/// The artifacts that contents refer to. They are read in pieces, and only the last few bytes are carried over.
fn in_contents(mut contents: impl Read) -> std::io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut text = Zeroizing::new(Vec::with_capacity(PIECE + 2 * REFERENCE));
    let mut piece = Zeroizing::new(vec![0; PIECE]);
    loop {
        let read = contents.read(&mut piece)?;
        text.extend_from_slice(piece.get(..read).unwrap_or_default());
        // A reference counts only once the following byte is known.
        found.extend(ids(&Zeroizing::new(String::from_utf8_lossy(&text).into_owned())));
        if read == 0 {
            return Ok(found);
        }
        let done = text.len().saturating_sub(REFERENCE);
        text.drain(..done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::EncryptionKey;
    use crate::message::ChatRole;
    use crate::store::{NewArtifact, StoreOptions, Summary};
    use jiff::Timestamp;

    /// A reader that returns this many bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let (now, rest) = self.0.split_at(self.1.min(self.0.len()).min(into.len()));
            into[..now.len()].copy_from_slice(now);
            self.0 = rest;
            Ok(now.len())
        }
    }

    #[tokio::test]
    async fn what_a_summary_refers_to_is_in_use() {
        let key = EncryptionKey::generate().unwrap();
        let store = StoreOptions::new(key).open_in_memory().await.unwrap();
        let add = async |text: &'static str| {
            let new = NewArtifact::new(ArtifactKind::File, text);
            store.add_artifact(new, Box::new(text.as_bytes())).await.unwrap().artifact
        };
        let (used, unused) = (add("used").await, add("unused").await);
        let now = Timestamp::UNIX_EPOCH;
        let words = ChatMessage::at(ChatRole::User, "words", now);
        let seq = store.append_message(words).await.unwrap().seq;
        let of = std::iter::once(seq..=seq).collect();
        let summary = Summary::new(None, (now, now), of, used.reference());
        assert!(store.install_summary(summary, None, false).await.unwrap());
        let found = store.artifact_references().await.unwrap();
        assert_eq!(found.unreferenced, [unused]);
        assert!(found.messages.is_empty() && found.unread.is_empty());
    }

    #[test]
    fn references_are_found_however_the_text_comes_in_pieces() {
        let (one, two) = ("0".repeat(32), "f".repeat(32));
        let text = format!("é a.rs  artifact://{one}\n  b.rs  artifact://{two}");
        for size in 1..=text.len() {
            let found = in_contents(Slow(text.as_bytes(), size)).unwrap();
            assert_eq!(found, BTreeSet::from([one.clone(), two.clone()]), "by {size}");
        }
    }
}
