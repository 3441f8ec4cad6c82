//! Snapshots: each is a document of its own, and the settings list it with its newest revision.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::store::record::document::DocumentId;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::finding::{Finding, FindingKind};
use crate::store::record::profile::Profile;
use crate::store::record::snapshot::{Snapshot, check_id};
use crate::store::rules::append::{numbered, validated};
use crate::store::rules::batch::Batch;
use crate::store::rules::limits::{check_room, expire};
use crate::store::rules::read::{Newest, now};
use crate::store::rules::restore::RestoreJob;
use crate::store::rules::view::{View, parse, retried};
use crate::store::rules::{ReadQuery, StoreBackend};

/// The snapshots that these settings list, newest first, and what is wrong with those that cannot be read.
pub(crate) async fn list(
    store: &(impl StoreBackend + ?Sized),
    profile: &Profile,
) -> Result<(Vec<Snapshot>, Vec<Finding>)> {
    let (mut snapshots, mut findings) = (Vec::new(), Vec::new());
    for (id, rev) in profile.listed() {
        match open(store, id, rev).await? {
            Ok(snapshot) => snapshots.push(snapshot),
            Err(kind) => findings.push(kind.in_file(name(id).to_string())),
        }
    }
    snapshots.sort_by(|a: &Snapshot, b| (b.saved_at, &b.id).cmp(&(a.saved_at, &a.id)));
    Ok((snapshots, findings))
}

pub(crate) async fn read(
    store: &(impl StoreBackend + ?Sized),
    id: &str,
) -> Result<Option<Snapshot>> {
    let View { profile, .. } = View::of(store).await?;
    let Some(rev) = profile.revision(id) else { return Ok(None) };
    match open(store, id, rev).await? {
        Ok(snapshot) => Ok(Some(snapshot)),
        Err(kind) => Err(Error::Damaged {
            place: name(id).to_string(),
            reason: match kind {
                FindingKind::Absent => "it is gone",
                FindingKind::Outdated => "an older state of it was put back",
                _ => "it is no snapshot",
            },
        }),
    }
}

pub(crate) async fn save(store: &(impl StoreBackend + ?Sized), snapshot: &Snapshot) -> Result<()> {
    check_id(&snapshot.id)?;
    retried!(save_once(store, snapshot.clone()))
}

async fn save_once(store: &(impl StoreBackend + ?Sized), mut snapshot: Snapshot) -> Result<()> {
    let mut view = View::of(store).await?;
    snapshot.drop_forgotten(&view.state.forgotten, view.state.last_seq)?;
    let listed = view.profile.snapshots.get(&snapshot.id).copied().unwrap_or(0);
    snapshot.rev = listed.saturating_add(1);
    let batch = Batch::new(&view.state).write(name(&snapshot.id), snapshot.to_plaintext()?);
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
    let is_imported = open(store, id, 0).await?.is_ok_and(|snapshot| snapshot.is_imported());
    // First in the settings, so that it never comes back.
    let batch = view.change(|profile| profile.unlist(id, is_imported))?;
    store.commit(batch.remove(name(id))).await.map(drop)
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
    let Some(snapshot) = read(store, &restoring.id).await? else {
        return Err(Error::NoSuchSnapshot { nearest: Vec::new() });
    };
    let since = restoring.since..jiff::Timestamp::MAX;
    let result = store.read(ReadQuery::Times(since)).await?;
    let newest = Newest::of(store, &view, view.retention, 0).await?;
    let horizon = newest.horizon(now(store));
    let shown = result.messages.iter();
    let shown = shown.filter(|m| horizon.shows(m.name) && !view.profile.hides(m));
    let copies = validated(store, restoring.copies(&snapshot, shown))?;
    if copies.is_empty() {
        return Ok(Vec::new());
    }
    let before = view.state.revision;
    view = expire(store).await?;
    if view.state.revision != before {
        return Err(Error::Conflict);
    }
    check_room(store, &view, copies.len()).await?;
    let stored = numbered(store, &view, &copies)?;
    let batch = view.change(|profile| {
        profile.restored.extend(stored.iter().map(|stored| stored.seq..=stored.seq));
    })?;
    store.commit(batch.append(stored.iter().cloned())).await?;
    Ok(stored)
}

async fn open(
    store: &(impl StoreBackend + ?Sized),
    id: &str,
    rev: u64,
) -> Result<std::result::Result<Snapshot, FindingKind>> {
    let id = name(id);
    let bytes = match store.document(&id).await {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(Err(FindingKind::Absent)),
        Err(Error::Damaged { reason, .. }) => return Ok(Err(FindingKind::Damaged(reason))),
        Err(error) => return Err(error),
    };
    Ok(match parse::<Snapshot>(&id, &bytes) {
        Err(_) => Err(FindingKind::BadRecord),
        Ok(snapshot) if name(&snapshot.id) != id => Err(FindingKind::BadRecord),
        Ok(snapshot) if snapshot.rev < rev => Err(FindingKind::Outdated),
        Ok(snapshot) => Ok(snapshot),
    })
}

fn name(id: &str) -> DocumentId {
    DocumentId::Snapshot(id.to_owned())
}
