//! The file store as a medium, and its artifacts.

use std::io::Read;
use std::sync::Arc;

use async_trait::async_trait;
use zeroize::Zeroizing;

use crate::clock::Clock;
use crate::error::Result;
use crate::message::redact::Redactor;
use crate::scope::Scope;
use crate::store::file_store::FileConversationStore;
use crate::store::folder::artifact_contents::ArtifactContents;
use crate::store::folder::{artifact_files, document, segments, snapshot_files};
use crate::store::read::query::RangeQuery;
use crate::store::read::reader::Reader;
use crate::store::read::state;
use crate::store::record::artifact::{AddedArtifact, Artifact, NewArtifact};
use crate::store::record::document::{Document, DocumentId};
use crate::store::record::encoding::to_json;
use crate::store::record::finding::Finding;
use crate::store::record::read_result::ReadResult;
use crate::store::record::store_state::StoreState;
use crate::store::rules::batch::Batch;
use crate::store::rules::{ArtifactStore, ReadQuery, StoreBackend, StorePolicy};
use crate::store::write::add_artifact;

#[async_trait]
impl StoreBackend for FileConversationStore {
    fn scope(&self) -> &Arc<Scope> {
        Self::scope(self)
    }

    async fn state(&self) -> Result<StoreState> {
        self.read_with(move |reader| Ok(state::of_tail(&reader.newest()?))).await
    }

    async fn read(&self, query: ReadQuery) -> Result<ReadResult> {
        self.read_with(move |reader| match query {
            ReadQuery::Tail(n) => Ok(reader.load(n)?.newest(n).unwrap_or_default()),
            ReadQuery::Seqs(seqs) => Ok(reader.read_kept(&RangeQuery::Seqs(seqs))?.0),
            ReadQuery::Times(times) => Ok(reader.read_kept(&RangeQuery::Times(times))?.0),
        })
        .await
    }

    async fn document(&self, id: &DocumentId) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let id = id.clone();
        self.read_with(move |reader| match id {
            DocumentId::Named(Document::Profile) => settings(reader),
            DocumentId::Named(named) => document::read(&reader.folder, named),
            DocumentId::Segment(block) => segments::read(&reader.folder, block),
            DocumentId::Snapshot(id) => {
                let snapshot = snapshot_files::read(&reader.folder, &*reader.settings()?, &id)?;
                snapshot.map(|snapshot| snapshot.to_plaintext()).transpose()
            }
        })
        .await
    }

    async fn commit(&self, batch: Batch) -> Result<StoreState> {
        self.write(move |writer| writer.commit(&batch)).await
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    fn redactor(&self) -> Option<Arc<dyn Redactor>> {
        self.redactor.clone()
    }

    fn policy(&self) -> StorePolicy {
        self.policy
    }

    fn artifact_store(&self) -> Option<&dyn ArtifactStore> {
        Some(self)
    }
}

/// The settings as JSON; `None` for a conversation that never had any.
fn settings(reader: &Reader) -> Result<Option<Zeroizing<Vec<u8>>>> {
    let tail = reader.newest()?;
    tail.check_settings(&reader.folder)?;
    if tail.profile.rev == 0 {
        return Ok(None);
    }
    to_json(&*tail.profile).map(Some)
}

#[async_trait]
impl ArtifactStore for FileConversationStore {
    async fn artifacts(&self) -> Result<(Vec<Artifact>, Vec<Finding>)> {
        self.read_with(move |reader| artifact_files::list(&reader.folder, &*reader.settings()?))
            .await
    }

    async fn add_artifact(
        &self,
        artifact: NewArtifact,
        mut content: Box<dyn Read + Send>,
    ) -> Result<AddedArtifact> {
        let writer = Arc::clone(&self.writer);
        self.read_with(move |reader| add_artifact::add(reader, &writer, &artifact, &mut *content))
            .await
    }

    async fn open_artifact(&self, id: &str) -> Result<Option<ArtifactContents>> {
        let id = id.to_owned();
        let open = move |reader: &Reader| {
            artifact_files::read_contents(&reader.folder, &*reader.settings()?, &id)
        };
        self.read_with(open).await
    }

    async fn fetch_artifact(&self, id: &str) -> Result<bool> {
        match &self.artifact_source {
            Some(source) => source.fetch(self.scope(), id).await,
            None => Ok(false),
        }
    }

    async fn delete_artifacts(&self, ids: &[String]) -> Result<()> {
        let ids = ids.to_vec();
        self.write(move |writer| writer.delete_artifacts(&ids)).await
    }
}
