//! Changing snapshots: each is a document of its own, and the settings list it with its newest revision.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::store::record::encoding::StoredMessage;
use crate::store::record::snapshot::{Snapshot, check_id};
use crate::store::rules::StoreBackend;
use crate::store::rules::append::{numbered, validated};
use crate::store::rules::backend_state::BackendState;
use crate::store::rules::batch::Batch;
use crate::store::rules::current_state::check_room;
use crate::store::rules::limits::expire;
use crate::store::rules::read::{open_snapshot, snapshot_name};
use crate::store::rules::restore::RestoreJob;
use crate::store::rules::view::{View, retried};

pub(crate) async fn save(store: &(impl StoreBackend + ?Sized), snapshot: &Snapshot) -> Result<()> {
    check_id(&snapshot.id)?;
    retried!(save_once(store, snapshot.clone()))
}

async fn save_once(store: &(impl StoreBackend + ?Sized), mut snapshot: Snapshot) -> Result<()> {
    let mut view = View::of(store).await?;
    snapshot.drop_forgotten(&view.state.forgotten, view.state.last_seq)?;
    let listed = view.profile.snapshots.get(&snapshot.id).copied().unwrap_or(0);
    snapshot.rev = listed.saturating_add(1);
    let batch =
        Batch::new(&view.state).write(snapshot_name(&snapshot.id), snapshot.to_plaintext()?);
    let batch = view.change_after(batch, |profile| {
        profile.snapshots.insert(snapshot.id.clone(), snapshot.rev);
    })?;
    store.commit(batch).await.map(drop)
}

pub(crate) async fn delete(store: &(impl StoreBackend + ?Sized), id: &str) -> Result<()> {
    check_id(id)?;
    retried!(delete_once(store, id))
}

async fn delete_once(store: &(impl StoreBackend + ?Sized), id: &str) -> Result<()> {
    let mut view = View::of(store).await?;
    let is_imported =
        open_snapshot(store, id, 0).await?.is_ok_and(|snapshot| snapshot.is_imported());
    // First in the settings, so that it never comes back.
    let batch = view.change(|profile| profile.unlist(id, is_imported))?;
    store.commit(batch.remove(snapshot_name(id))).await.map(drop)
}

pub(crate) async fn restore(
    store: &(impl StoreBackend + ?Sized),
    restoring: &RestoreJob,
) -> Result<Vec<Arc<StoredMessage>>> {
    retried!(restore_once(store, restoring))
}

async fn restore_once(
    store: &(impl StoreBackend + ?Sized),
    restoring: &RestoreJob,
) -> Result<Vec<Arc<StoredMessage>>> {
    let mut view = View::of(store).await?;
    let state = BackendState { store, view: &view };
    let copies = validated(store, restoring.missing(&state).await?)?;
    if copies.is_empty() {
        return Ok(Vec::new());
    }
    let before = view.state.revision;
    view = expire(store).await?;
    if view.state.revision != before {
        return Err(Error::Conflict);
    }
    check_room(&BackendState { store, view: &view }, copies.len()).await?;
    let stored = numbered(store, &view, &copies)?;
    let batch = view.change(|profile| {
        profile.restored.extend(stored.iter().map(|stored| stored.seq..=stored.seq));
    })?;
    store.commit(batch.append(stored.iter().cloned())).await?;
    Ok(stored)
}
