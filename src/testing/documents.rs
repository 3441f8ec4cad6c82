//! The contract of documents, settings, snapshots and summaries.

use zeroize::Zeroizing;

use super::*;
use crate::store::{Batch, Document, DocumentId, SavedMessage, Snapshot, Summary};

pub(super) async fn a_document_is_what_was_last_written<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let (store, other) = (at.open().await?, at.open().await?);
    holds!(store.read_document(Document::Calibration).await?.is_none());
    let every_byte: Vec<u8> = (0..=255).collect();
    for (bytes, writer) in [(&b"{}"[..], &store), (&[], &other), (&every_byte, &store)] {
        writer.write_document(Document::Calibration, bytes).await?;
        for store in [&store, &other, &at.open().await?] {
            let found = store.read_document(Document::Calibration).await?;
            same!(found.as_ref().map(|found| found.as_slice()), Some(bytes));
            holds!(seqs(store.read_tail(9).await)?.is_empty());
        }
    }
    same!(other.append_message(said(1)).await?.seq, 1);
    store.write_document(Document::Calibration, b"after").await?;
    same!(store.append_message(said(2)).await?.seq, 2);
    store.forget(&[1..=2]).await?;
    let found = other.read_document(Document::Calibration).await?;
    same!(found.as_ref().map(|found| found.as_slice()), Some(&b"after"[..]));
    Ok(())
}

pub(super) async fn a_document_has_a_size_limit<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open_with(StorePolicy::default().max_message_bytes(100)).await?;
    store.write_document(Document::Calibration, &[7; 100]).await?;
    refused!(
        store.write_document(Document::Calibration, &[8; 101]).await,
        Error::TooLarge { size: 101, limit: 100 }
    );
    let found = store.read_document(Document::Calibration).await?;
    same!(found.as_ref().map(|found| found.as_slice()), Some(&[7; 100][..]));
    refused!(store.write_document(Document::Profile, b"{}").await, Error::InvalidMessage { .. });
    Ok(())
}

pub(super) async fn settings_are_kept_and_no_change_is_lost<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    holds!(store.profile().await?.title.is_none());
    store.change_profile(Box::new(|profile| profile.rename(Some("Title".into())))).await?;
    let mut writers = Vec::new();
    for writer in 0..4 {
        let store = at.open().await?;
        writers.push(tokio::spawn(async move {
            for n in 0..4 {
                let tag = format!("{writer}-{n}");
                let change = move |profile: &mut crate::store::Profile| {
                    profile.tags.insert(tag.clone());
                };
                store.change_profile(Box::new(change)).await?;
            }
            Ok::<(), Error>(())
        }));
    }
    for writer in writers {
        writer.await.map_err(|_| BrokenRule::new("a writer panicked".to_owned()))??;
    }
    for store in [store, at.open().await?] {
        let profile = store.profile().await?;
        same!((profile.title.as_deref(), profile.tags.len()), (Some("Title"), 16));
    }
    Ok(())
}

pub(super) async fn clearing_hides_and_deletes_nothing<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    store.append_all(numbered(1..=2)).await?;
    store.clear().await?;
    store.append_message(said(3)).await?;
    let profile = at.open().await?.profile().await?;
    let all = complete(store.read_tail(9).await?)?;
    let hidden: Vec<_> = all.messages.iter().map(|stored| profile.hides(stored)).collect();
    same!(hidden, [true, true, false]);
    Ok(())
}

pub(super) async fn a_snapshot_comes_back_as_it_was_saved<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    let stored = store.append_all(numbered(1..=2)).await?;
    let now = time(START);
    let saved: Vec<_> =
        stored.iter().map(|m| SavedMessage::new(m.seq, m.message.clone())).collect();
    let mut snapshot = Snapshot::new(now, (now, now), saved)?;
    snapshot.description = Some("Before dinner".into());
    store.save_snapshot(snapshot.clone()).await?;
    let reopened = at.open().await?;
    let found = reopened.read_snapshot(&snapshot.id).await?;
    holds!(
        found.is_some_and(|found| found.messages == snapshot.messages
            && found.description == snapshot.description)
    );
    same!(reopened.snapshots().await?.0.len(), 1);
    // A snapshot whose messages were all forgotten is not saved.
    reopened.forget(&[1..=2]).await?;
    refused!(store.save_snapshot(snapshot.clone()).await, Error::EmptySnapshot);
    store.delete_snapshot(&snapshot.id).await?;
    holds!(store.read_snapshot(&snapshot.id).await?.is_none());
    refused!(store.delete_snapshot("../profile").await, Error::InvalidMessage { .. });
    Ok(())
}

pub(super) async fn a_summary_needs_the_one_before<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    let stored = store.append_all(numbered(1..=4)).await?;
    let (older, newer) = stored.split_at(2);
    let first = Summary::of_messages(None, time(START), older, "1 and 2");
    holds!(store.install_summary(first.clone(), None, false).await?);
    let second = Summary::of_messages(None, time(START), newer, "3 and 4");
    holds!(!store.install_summary(second.clone(), None, false).await?);
    holds!(store.install_summary(second.clone(), Some(first.clone()), false).await?);
    holds!(at.open().await?.profile().await?.summary(None) == Some(&second));
    holds!(store.remove_summary(None).await?);
    holds!(store.profile().await?.summary(None) == Some(&first));
    holds!(store.remove_summary(None).await? && !store.remove_summary(None).await?);
    // Forgotten messages cannot be summarized.
    store.forget(&[1..=1]).await?;
    holds!(!store.install_summary(first, None, false).await?);
    Ok(())
}

pub(super) async fn a_segment_of_the_search_index_goes_with_its_messages<F>(
    at: Fixture<'_, F>,
) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let (store, other) = (at.open().await?, at.open().await?);
    let last = 2 * 1024 + 5;
    store.append_all(numbered(1..=last)).await?;
    let write = async |block: u64, bytes: &[u8]| -> Result<()> {
        let bytes = Zeroizing::new(bytes.to_vec());
        let batch = Batch::new(&store.state().await?).write(DocumentId::Segment(block), bytes);
        store.commit(batch).await.map(drop)
    };
    let found = async |block: u64| -> Result<Option<Vec<u8>>> {
        Ok(other.document(&DocumentId::Segment(block)).await?.map(|bytes| bytes.to_vec()))
    };
    for block in 0..3 {
        same!(found(block).await?, None);
        write(block, b"before").await?;
        write(block, &[u8::try_from(block).unwrap_or(0), 0, 255]).await?;
        same!(found(block).await?, Some(vec![u8::try_from(block).unwrap_or(0), 0, 255]));
    }
    store.forget(&[1024..=1024]).await?;
    same!(found(0).await?, None);
    holds!(found(1).await?.is_some() && found(2).await?.is_some());
    store.append_message(said("after")).await?;
    store.forget(&[1025..=1025, last..=last]).await?;
    holds!(found(1).await?.is_none() && found(2).await?.is_none());
    write(0, b"again").await?;
    store.forget_all().await?;
    same!(found(0).await?, None);
    Ok(())
}
