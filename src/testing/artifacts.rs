//! The contract of artifacts, for stores that have them.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

use super::*;
use crate::store::{ArtifactKind, ArtifactStore, NewArtifact};

fn file(name: &str) -> NewArtifact {
    NewArtifact::new(ArtifactKind::File, name).with_metadata("origin", "a test")
}

fn content(bytes: &[u8]) -> Box<dyn Read + Send> {
    Box::new(Cursor::new(bytes.to_vec()))
}

async fn ids(store: &dyn ArtifactStore) -> std::result::Result<Vec<String>, BrokenRule> {
    let (artifacts, findings) = store.artifacts().await?;
    if !findings.is_empty() {
        return Err(BrokenRule(format!("the list left something out: {findings:?}")));
    }
    Ok(artifacts.into_iter().map(|artifact| artifact.id.clone()).collect())
}

pub(super) async fn an_artifact_comes_back_as_it_was_added<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let (store, other) = (at.open().await?, at.open().await?);
    let Some(store) = store.artifact_store() else { return Ok(()) };
    let Some(other) = other.artifact_store() else {
        return Err("it has artifacts once only".into());
    };
    let byte = |n: u32| {
        let [high, ..] = n.wrapping_mul(2_654_435_761).to_be_bytes();
        high
    };
    let long: Vec<u8> = (0..200_000).map(byte).collect();
    let text = b"first\nsecond\n";
    let (empty, binary) = (&b""[..], &long[..]);
    let mut added = Vec::new();
    for (name, bytes, lines) in
        [("a", &text[..], Some(2)), ("b", binary, None), ("c", empty, Some(0))]
    {
        let created =
            time(START) + jiff::SignedDuration::from_secs(i64::try_from(added.len()).unwrap_or(0));
        let new = file(name).created_at(created);
        let artifact = store.add_artifact(new, content(bytes)).await?.artifact;
        same!(artifact.created_at, created);
        same!(artifact.name.as_str(), name);
        same!(artifact.size, bytes.len() as u64);
        same!(artifact.lines, lines);
        same!(artifact.metadata.get("origin").map(String::as_str), Some("a test"));
        let Some(mut contents) = other.open_artifact(&artifact.id).await? else {
            return Err("the other store has no contents".into());
        };
        holds!(*contents.artifact() == artifact);
        let mut found = Vec::new();
        contents.read_to_end(&mut found)?;
        same!(found, bytes);
        let middle = bytes.len() / 2;
        contents.seek(SeekFrom::Start(middle as u64))?;
        found.clear();
        contents.read_to_end(&mut found)?;
        same!(found, bytes.get(middle..).unwrap_or_default());
        added.push(artifact.id.clone());
    }
    same!(ids(other).await?, added);
    other.delete_artifacts(&[added.remove(0), "0".repeat(32)]).await?;
    same!(ids(store).await?, added);
    holds!(store.open_artifact(&"0".repeat(32)).await?.is_none());
    Ok(())
}

pub(super) async fn the_same_bytes_are_added_once<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    let Some(store) = store.artifact_store() else { return Ok(()) };
    let first = store.add_artifact(file("one"), content(b"words")).await?;
    let again = store.add_artifact(file("two"), content(b"words")).await?;
    holds!(!first.was_there && again.was_there);
    same!(again.artifact, first.artifact);
    // Each result belongs to its own message.
    let result = || NewArtifact::new(ArtifactKind::ToolResult, "a tool");
    let one = store.add_artifact(result(), content(b"words")).await?;
    let two = store.add_artifact(result(), content(b"words")).await?;
    holds!(!one.was_there && !two.was_there && one.artifact.id != two.artifact.id);
    same!(ids(store).await?.len(), 3);
    Ok(())
}

pub(super) async fn contents_that_cannot_be_read_add_nothing<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _into: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("broken"))
        }
    }
    let store = at.open().await?;
    let Some(store) = store.artifact_store() else { return Ok(()) };
    let broken = Box::new(Cursor::new(b"the beginning").chain(Broken));
    refused!(store.add_artifact(file("half"), broken).await, Error::Io { .. });
    holds!(ids(store).await?.is_empty());
    Ok(())
}

pub(super) async fn an_artifact_goes_with_the_message_that_it_holds<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    let Some(artifacts) = store.artifact_store() else { return Ok(()) };
    let kept = artifacts.add_artifact(file("kept"), content(b"a file")).await?.artifact;
    let result = NewArtifact::new(ArtifactKind::ToolResult, "a tool");
    let moved = artifacts.add_artifact(result, content(b"a long result")).await?.artifact;
    let mut message = said("its beginning");
    message.metadata.insert("artifact".to_owned(), moved.id.clone());
    same!(message.moved_to(), Some(moved.id.as_str()));
    store.append_message(message).await?;
    store.append_message(said(format!("see {}", kept.reference()))).await?;
    store.forget(&[1..=2]).await?;
    same!(ids(artifacts).await?, std::slice::from_ref(&kept.id));
    store.forget_all().await?;
    holds!(ids(artifacts).await?.is_empty());
    Ok(())
}
