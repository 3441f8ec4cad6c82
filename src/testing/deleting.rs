//! The contract of forgetting.

use super::*;
use crate::store::{Document, RestoreThreads, SavedMessage, Snapshot, Summary};
use jiff::tz::TimeZone;

pub(super) async fn what_is_forgotten_stays_gone<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    store.append_all(numbered(1..=6)).await?;
    let report = store.forget(&[2..=2]).await?;
    same!((report.removed, report.left.len()), (vec![2], 0));
    same!(seqs(store.read_tail(9).await)?, [1, 3, 4, 5, 6]);
    same!(store.forget(&[5..=u64::MAX, 1..=1]).await?.removed, [1, 5, 6]);
    for store in [&store, &at.open().await?] {
        same!(seqs(store.read_tail(9).await)?, [3, 4]);
        same!(seqs(store.read_seqs(0..=u64::MAX).await)?, [3, 4]);
        let forgotten: Vec<_> = store.state().await?.forgotten().collect();
        holds!([1, 2, 5, 6].iter().all(|seq| forgotten.iter().any(|range| range.contains(seq))));
        holds!(!forgotten.iter().any(|range| range.contains(&3) || range.contains(&4)));
    }
    // A number is never reused.
    let next = store.append_message(said("new")).await?.seq;
    holds!(next > 6);
    same!(seqs(store.read_tail(9).await)?, [3, 4, next]);
    Ok(())
}

pub(super) async fn forgetting_again_changes_nothing<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    store.append_all(numbered(1..=3)).await?;
    store.forget(&[1..=2]).await?;
    let before = store.state().await?;
    for again in [&[1..=2][..], &[1..=1, 2..=2], &[9..=12], &[]] {
        holds!(store.forget(again).await?.removed.is_empty());
    }
    same!(store.state().await?.last_seq, before.last_seq);
    same!(seqs(store.read_tail(9).await)?, [3]);
    Ok(())
}

pub(super) async fn the_last_message_can_be_forgotten_again_and_again<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    let mut last = 0;
    for _ in 0..4 {
        let seq = store.append_message(said("short-lived")).await?.seq;
        holds!(seq > last);
        same!(store.forget(&[seq..=seq]).await?.removed, [seq]);
        holds!(seqs(store.read_tail(9).await)?.is_empty());
        last = seq;
    }
    let reopened = at.open().await?;
    let seq = reopened.append_message(said("stays")).await?.seq;
    holds!(seq > last);
    same!(seqs(store.read_tail(9).await)?, [seq]);
    Ok(())
}

pub(super) async fn a_plan_is_carried_out_and_nothing_else<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    store.append_all(numbered(1..=3)).await?;
    let one = store.plan_forget(&[1..=1]).await?;
    same!(one.messages, [1]);
    let all = store.plan_forget_all().await?;
    same!((all.messages.len(), all.is_whole()), (3, true));
    same!(seqs(store.read_tail(9).await)?, [1, 2, 3]);
    store.append_message(said("more")).await?;
    refused!(store.forget_planned(&all).await, Error::MoreThanAnnounced);
    same!(store.forget_planned(&one).await?.removed, [1]);
    same!(seqs(store.read_tail(9).await)?, [2, 3, 4]);
    Ok(())
}

pub(super) async fn forgetting_reaches_snapshots_copies_and_summaries<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    let stored = store.append_all(numbered(1..=4)).await?;
    let saved = stored.iter().take(2).map(|m| SavedMessage::new(m.seq, m.message.clone()));
    let now = time(START);
    let snapshot = Snapshot::new(now, (now, now), saved.collect())?;
    let id = snapshot.id.clone();
    store.save_snapshot(snapshot).await?;
    store.clear().await?;
    let now = now.to_zoned(TimeZone::UTC);
    let copies =
        store.restore(&id, now.timestamp(), RestoreThreads::default(), now.clone()).await?;
    same!(copies.iter().map(|m| m.message.content.as_str()).collect::<Vec<_>>(), ["1", "2"]);
    // Messages that the thread still sees are not restored again.
    let again = store.restore(&id, now.timestamp(), RestoreThreads::default(), now).await?;
    holds!(again.is_empty());
    let of: Vec<_> = copies.iter().map(|m| m.seq).collect();
    let summary = Summary::of_messages(None, time(START), &copies, "about 1 and 2");
    holds!(store.install_summary(summary, None, false).await?);

    let plan = store.plan_forget(&[1..=1]).await?;
    let copy = of.first().copied().unwrap_or_default();
    same!((&plan.messages[..], &plan.copies[..], plan.summaries), (&[1][..], &[copy][..], 1));
    same!(plan.changed_snapshots, std::slice::from_ref(&id));
    let report = store.forget_planned(&plan).await?;
    same!((report.removed, report.snapshots), (vec![1, copy], 1));
    holds!(store.profile().await?.summary(None).is_none());
    let left = store.read_snapshot(&id).await?.map(|snapshot| snapshot.messages.len());
    same!(left, Some(1));
    holds!(!texts(store.read_tail(9).await)?.contains(&"1".to_owned()));
    // The second is forgotten through its copy, and the snapshot goes with its last message.
    store.forget(&[2..=2]).await?;
    same!(seqs(at.open().await?.read_tail(9).await)?, [3, 4]);
    holds!(store.read_snapshot(&id).await?.is_none());
    holds!(store.snapshots().await?.0.is_empty());
    Ok(())
}

pub(super) async fn forgetting_everything_leaves_nothing<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    let stored = store.append_all(numbered(1..=3)).await?;
    store.write_document(Document::Calibration, b"learned").await?;
    store.change_profile(Box::new(|profile| profile.rename(Some("Title".into())))).await?;
    let now = time(START);
    let saved = stored.iter().map(|m| SavedMessage::new(m.seq, m.message.clone())).collect();
    store.save_snapshot(Snapshot::new(now, (now, now), saved)?).await?;
    let plan = store.plan_forget_all().await?;
    holds!(plan.description && plan.deleted_snapshots.len() == 1);
    same!(store.forget_planned(&plan).await?.removed, [1, 2, 3]);
    for store in [store, at.open().await?] {
        holds!(texts(store.read_tail(9).await)?.is_empty());
        holds!(store.snapshots().await?.0.is_empty());
        holds!(store.profile().await?.title.is_none());
        let calibration = store.read_document(Document::Calibration).await?;
        holds!(calibration.is_none_or(|bytes| bytes.as_slice() == b"{}"));
        holds!(store.plan_forget_all().await?.is_nothing());
    }
    Ok(())
}
