//! Changing settings, documents and summaries.

use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::store::record::document::Document;
use crate::store::record::profile::{Profile, ProfileChange};
use crate::store::record::summary::Summary;
use crate::store::rules::StoreBackend;
use crate::store::rules::backend_state::BackendState;
use crate::store::rules::batch::Batch;
use crate::store::rules::limits::check_hidden_stay;
use crate::store::rules::read::now;
use crate::store::rules::view::{View, retried};

pub(crate) async fn change(
    store: &(impl StoreBackend + ?Sized),
    mut change: ProfileChange,
) -> Result<Profile> {
    retried!(change_once(store, &mut change))
}

async fn change_once(
    store: &(impl StoreBackend + ?Sized),
    change: &mut ProfileChange,
) -> Result<Profile> {
    let mut view = View::of(store).await?;
    let mut changed = view.profile.clone();
    change(&mut changed);
    check_hidden_stay(&BackendState { store, view: &view }, changed.retention).await?;
    let batch = view.change(|own| *own = std::mem::take(own).with_host_change(changed))?;
    store.commit(batch).await?;
    Ok(view.profile)
}

pub(crate) async fn clear(store: &(impl StoreBackend + ?Sized)) -> Result<Profile> {
    retried!(clear_once(store))
}

async fn clear_once(store: &(impl StoreBackend + ?Sized)) -> Result<Profile> {
    let mut view = View::of(store).await?;
    let last = view.state.last_seq;
    let batch = view.change(|profile| profile.clear(now(store), last))?;
    store.commit(batch).await?;
    Ok(view.profile)
}

pub(crate) async fn write_document(
    store: &(impl StoreBackend + ?Sized),
    document: Document,
    plaintext: &[u8],
) -> Result<()> {
    check_writable(document)?;
    let (size, limit) = (plaintext.len(), store.policy().max_message_bytes);
    if size > limit {
        return Err(Error::TooLarge { size, limit });
    }
    retried!(write_document_once(store, document, plaintext))
}

async fn write_document_once(
    store: &(impl StoreBackend + ?Sized),
    document: Document,
    plaintext: &[u8],
) -> Result<()> {
    let batch = Batch::new(&store.state().await?);
    store.commit(batch.write(document, Zeroizing::new(plaintext.to_vec()))).await.map(drop)
}

/// Refuses documents that only a change of the settings may write.
///
/// # Errors
/// [`Error::InvalidMessage`].
pub(crate) fn check_writable(document: Document) -> Result<()> {
    match document {
        Document::Presets | Document::Profile | Document::Tombstones => {
            Err(Error::InvalidMessage {
                reason: "the settings are changed with `change_profile`, so that no change is lost",
            })
        }
        Document::Imports | Document::Sync | Document::Teams | Document::Threads => {
            Err(Error::InvalidMessage { reason: "the store keeps this document by itself" })
        }
        Document::Calibration => Ok(()),
    }
}

pub(crate) async fn install_summary(
    store: &(impl StoreBackend + ?Sized),
    summary: &Summary,
    before: Option<&Summary>,
    continues: bool,
) -> Result<bool> {
    retried!(install_summary_once(store, summary, before, continues))
}

async fn install_summary_once(
    store: &(impl StoreBackend + ?Sized),
    summary: &Summary,
    before: Option<&Summary>,
    continues: bool,
) -> Result<bool> {
    let mut view = View::of(store).await?;
    if !view.profile.may_install(summary, before, &view.state.forgotten) {
        return Ok(false);
    }
    let batch = view.change(|profile| profile.install(summary.clone(), continues))?;
    store.commit(batch).await?;
    Ok(true)
}

pub(crate) async fn remove_summary(
    store: &(impl StoreBackend + ?Sized),
    thread: Option<&str>,
) -> Result<bool> {
    retried!(remove_summary_once(store, thread))
}

async fn remove_summary_once(
    store: &(impl StoreBackend + ?Sized),
    thread: Option<&str>,
) -> Result<bool> {
    let mut view = View::of(store).await?;
    let mut was_there = false;
    let batch = view.change(|profile| was_there = profile.remove_summary(thread))?;
    store.commit(batch).await?;
    Ok(was_there)
}
