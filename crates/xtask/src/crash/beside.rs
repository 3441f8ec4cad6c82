//! Steps on settings and snapshots.

use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::path::Path;

use sottovoce::admin::RepairOptions;
use sottovoce::store::{SavedMessage, Snapshot};
use sottovoce::{ConversationStore, FileConversationStore};

use crate::crash::check::ensure;
use crate::crash::house::{block_on, open, say};
use crate::crash::told::Told;
use crate::task::Result;

pub(crate) const FIRST: &str = "00000000-0000-4000-8000-000000000001";
const SECOND: &str = "00000000-0000-4000-8000-000000000002";

/// Changes the settings repeatedly to successive numbers.
pub(crate) fn set(root: &Path, numbers: RangeInclusive<u64>) -> Result<()> {
    block_on(async {
        let store = open(root, 1).await?;
        for number in numbers {
            let change = move |profile: &mut sottovoce::store::Profile| {
                profile.window_seconds = NonZeroU64::new(number);
            };
            store.change_profile(Box::new(change)).await?;
            say(&format!("document {number}"));
        }
        Ok(())
    })
}

/// Checks that the settings are the last acknowledged ones or the next.
pub(crate) fn settings(root: &Path, told: &Told, before: u64) -> Result<()> {
    block_on(async {
        let store = open(root, 1).await?;
        let found = store.profile().await?.window_seconds.map_or(0, NonZeroU64::get);
        let last = told.document.unwrap_or(before);
        ensure!(found == last || found == last + 1, "{found} is set, {last} was acknowledged");
        let again = open(root, 1).await?.profile().await?.window_seconds;
        ensure!(again.map(NonZeroU64::get) == Some(found), "another time it is {again:?}");
        Ok(())
    })
}

/// Saves a snapshot of everything under an id.
pub(crate) fn save(root: &Path, id: &str) -> Result<()> {
    block_on(async { save_in(&open(root, 1).await?, id).await })
}

async fn save_in(store: &FileConversationStore, id: &str) -> Result<()> {
    let messages = store.read_tail(usize::MAX).await?.messages;
    let saved = messages.iter().map(|m| SavedMessage::new(m.seq, m.message.clone()));
    let now = "2025-08-24T17:00:00Z".parse()?;
    let snapshot = Snapshot::new(now, (now, now), saved.collect())?.with_id(id)?;
    Ok(store.save_snapshot(snapshot).await?)
}

/// Saves a second snapshot, then deletes the first.
pub(crate) fn save_and_delete(root: &Path) -> Result<()> {
    block_on(async {
        let store = open(root, 1).await?;
        save_in(&store, SECOND).await?;
        say("document 1");
        store.delete_snapshot(FIRST).await?;
        say("document 2");
        Ok(())
    })
}

/// Checks that acknowledged snapshots exist and deleted ones do not.
pub(crate) fn snapshots(root: &Path, told: &Told) -> Result<()> {
    block_on(async {
        let store = open(root, 1).await?;
        let (snapshots, findings) = store.snapshots().await?;
        ensure!(findings.is_empty(), "{findings:?}");
        ensure!(snapshots.iter().all(|s| s.messages.len() == 2), "one of them is not whole");
        let mut there: Vec<&str> = snapshots.iter().map(|s| s.id.as_str()).collect();
        there.sort_unstable();
        let may_be: &[&[&str]] = match told.document {
            None => &[&[FIRST], &[FIRST, SECOND]],
            Some(1) => &[&[FIRST, SECOND], &[SECOND]],
            Some(_) => &[&[SECOND]],
        };
        ensure!(
            may_be.contains(&there.as_slice()),
            "there are {there:?} after {:?}",
            told.document
        );
        // A snapshot whose saving or deletion was interrupted is in no list, and stays until a repair.
        let repaired = store.repair(RepairOptions::default(), |_| {}).await?;
        ensure!(
            repaired.report.findings.is_empty(),
            "not repaired: {:?}",
            repaired.report.findings
        );
        Ok(())
    })
}

/// Checks that the snapshot opens, and holds none of the forgotten messages.
pub(crate) fn withdrawn(root: &Path, told: &Told, forgotten: &[u64]) -> Result<()> {
    block_on(async {
        let store = open(root, 1).await?;
        let snapshot = store.read_snapshot(FIRST).await?.ok_or("the snapshot is gone")?;
        let has = |seq: &u64| snapshot.messages.iter().any(|saved| saved.seq == *seq);
        let read = store.read_tail(usize::MAX).await?;
        let is_forgotten = !read.messages.iter().any(|stored| forgotten.contains(&stored.seq));
        ensure!(is_forgotten || !told.forgot, "what was forgotten is back");
        ensure!(!is_forgotten || !forgotten.iter().any(has), "it is in the snapshot still");
        ensure!([1, 4, 6].iter().all(has), "the snapshot has lost what was not forgotten");
        Ok(())
    })
}
