//! The state of a conversation that a store's medium tells of.

use crate::error::Result;
use crate::store::record::finding::Finding;
use crate::store::record::name::RecordName;
use crate::store::record::profile::Profile;
use crate::store::record::read_result::ReadResult;
use crate::store::record::retention::{Horizon, Retention};
use crate::store::record::seq_set::SeqSet;
use crate::store::record::snapshot::Snapshot;
use crate::store::rules::current_state::CurrentState;
use crate::store::rules::forget_plan::MessageRefs;
use crate::store::rules::read::{Newest, hidden_by, list_snapshots, now, read_snapshot};
use crate::store::rules::view::View;
use crate::store::rules::{ReadQuery, StoreBackend};

/// The state that a store's medium tells of.
pub(crate) struct BackendState<'a, S: ?Sized> {
    pub(crate) store: &'a S,
    pub(crate) view: &'a View,
}

impl<S: StoreBackend + ?Sized> CurrentState for BackendState<'_, S> {
    const STRETCH: u64 = 4096;

    fn last_seq(&self) -> u64 {
        self.view.state.last_seq
    }

    fn forgotten(&self) -> &SeqSet {
        &self.view.state.forgotten
    }

    fn vacant(&self) -> SeqSet {
        self.view.state.forgotten.clone()
    }

    fn profile(&self) -> &Profile {
        &self.view.profile
    }

    fn restored(&self) -> SeqSet {
        self.view.profile.restored.clone()
    }

    fn default_retention(&self) -> Retention {
        self.store.policy().retention
    }

    fn known_name(&self, _: u64) -> Option<RecordName> {
        None
    }

    async fn read(&self, query: ReadQuery) -> Result<ReadResult> {
        self.store.read(query).await
    }

    async fn horizon(&self, limits: Retention) -> Result<Horizon> {
        Ok(Newest::of(self.store, self.view, limits, 0).await?.horizon(now(self.store)))
    }

    async fn hidden(&self) -> Result<SeqSet> {
        let newest = Newest::of(self.store, self.view, self.view.retention, 0).await?;
        hidden_by(self.store, &newest, newest.horizon(now(self.store)), self.view).await
    }

    async fn shown_count(&self) -> Result<u64> {
        let newest = Newest::of(self.store, self.view, self.view.retention, 0).await?;
        Ok(newest.shown(newest.horizon(now(self.store))))
    }

    async fn snapshots(&self) -> Result<(Vec<Snapshot>, Vec<Finding>)> {
        list_snapshots(self.store, &self.view.profile).await
    }

    async fn snapshot(&self, id: &str) -> Result<Option<Snapshot>> {
        read_snapshot(self.store, self.view, id).await
    }

    async fn artifacts_of(&self, refs: &MessageRefs, is_whole: bool) -> Result<Vec<String>> {
        let Some(store) = self.store.artifact_store() else { return Ok(Vec::new()) };
        let (artifacts, _) = store.artifacts().await?;
        let goes = |id: &String| is_whole || refs.moved().any(|moved| moved == id);
        Ok(artifacts.into_iter().map(|artifact| artifact.id.clone()).filter(goes).collect())
    }
}
