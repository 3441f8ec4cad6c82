//! The contract of limits.

use super::*;
use crate::store::{HiddenMessages, Retention};

pub(super) async fn a_limit_hides_whole_exchanges_and_cleanup_deletes_them<F>(
    at: Fixture<'_, F>,
) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let policy = StorePolicy::default().retention(Retention::FOREVER.max_messages(3));
    let store = at.open_with(policy).await?;
    for n in 1..=3 {
        store.append_message(said(n)).await?;
        store.append_all(answer("yes")).await?;
    }
    // Three messages would begin with an answer.
    same!(seqs(store.read_tail(9).await)?, [5, 6]);
    same!(seqs(store.read_seqs(1..=9).await)?, [5, 6]);
    same!(seqs(store.read_times(Timestamp::MIN..Timestamp::MAX).await)?, [5, 6]);
    same!(seqs(store.read(crate::store::ReadQuery::Tail(9)).await)?, [1, 2, 3, 4, 5, 6]);
    same!(store.cleanup().await?.removed, 4);
    same!(store.cleanup().await?.removed, 0);
    same!(seqs(at.open().await?.read_tail(9).await)?, [5, 6]);
    Ok(())
}

pub(super) async fn an_expired_conversation_is_hidden_and_begins_anew<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let policy = StorePolicy::default().retention(Retention::FOREVER.ttl_seconds(60));
    let store = at.open_with(policy).await?;
    store.append_all(numbered(1..=2)).await?;
    at.set_clock("2025-08-24T16:37:00Z");
    same!(seqs(store.read_tail(9).await)?, [1, 2]);
    at.set_clock("2025-08-24T17:00:00Z");
    holds!(seqs(store.read_tail(9).await)?.is_empty());
    let next = store.append_message(said_at("new", "2025-08-24T17:00:00Z")).await?.seq;
    holds!(next > 2);
    // Expired messages stay gone even without limits.
    same!(seqs(at.open().await?.read_tail(9).await)?, [next]);
    Ok(())
}

pub(super) async fn wider_limits_ask_first<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    store.append_all(numbered(1..=4)).await?;
    let two = Some(Retention::FOREVER.max_messages(2));
    let effect = store.limits_effect(two).await?;
    same!((effect.hides.messages, effect.returns.messages), (2, 0));
    store.change_limits(two, HiddenMessages::Keep, &effect).await?;
    same!(seqs(store.read_tail(9).await)?, [3, 4]);
    let widen = |profile: &mut crate::store::Profile| profile.retention = None;
    refused!(store.change_profile(Box::new(widen)).await, Error::HiddenMessages);
    let effect = store.limits_effect(None).await?;
    same!((effect.hides.messages, effect.returns.messages), (0, 2));
    store.append_message(said(5)).await?;
    refused!(
        store.change_limits(None, HiddenMessages::Keep, &effect).await,
        Error::MoreThanAnnounced
    );
    let effect = store.limits_effect(None).await?;
    store.change_limits(None, HiddenMessages::Delete, &effect).await?;
    same!(seqs(at.open().await?.read_tail(9).await)?, [4, 5]);
    Ok(())
}

pub(super) async fn a_clock_behind_deletes_nothing<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let policy = StorePolicy::default().retention(Retention::FOREVER.ttl_seconds(60));
    let store = at.open_with(policy).await?;
    store.append_message(said(1)).await?;
    at.set_clock("2025-08-17T16:00:00Z");
    refused!(store.cleanup().await, Error::ClockBehind { .. });
    same!(seqs(store.read_tail(9).await)?, [1]);
    Ok(())
}

pub(super) async fn many_messages_over_the_limit_are_trimmed<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let policy = StorePolicy::default().retention(Retention::FOREVER.max_messages(4));
    let store = at.open_with(policy).await?;
    for n in 1..=60 {
        store.append_message(said(n)).await?;
    }
    let shown = texts(store.read_tail(99).await)?;
    same!(shown, ["57", "58", "59", "60"]);
    let stored = store.read(crate::store::ReadQuery::Tail(99)).await?.messages.len();
    holds!(stored < 40);
    Ok(())
}

pub(super) async fn a_limit_far_back_shows_whole_exchanges<F>(at: Fixture<'_, F>) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let store = at.open().await?;
    let mut many = Vec::new();
    for n in 0..10 {
        many.push(said(n));
        many.extend((0..99).flat_map(|_| answer("and so on")));
    }
    store.append_all(many).await?;
    for (most, first) in [(950, 101), (900, 101), (899, 201), (301, 701), (300, 701), (99, 902)] {
        let limits = Some(Retention::FOREVER.max_messages(most));
        let effect = store.limits_effect(limits).await?;
        store.change_limits(limits, HiddenMessages::Keep, &effect).await?;
        let shown: Vec<u64> = (first..=1_000).collect();
        same!(seqs(store.read_tail(2_000).await)?, shown);
        same!(seqs(store.read_seqs(1..=2_000).await)?, shown);
        same!(seqs(store.read_tail(2).await)?, [999, 1_000]);
    }
    same!(store.cleanup().await?.removed, 901);
    same!(seqs(store.read(crate::store::ReadQuery::Tail(2_000)).await)?.len(), 99);
    Ok(())
}

pub(super) async fn a_long_conversation_that_expired_stays_hidden_until_it_is_deleted<F>(
    at: Fixture<'_, F>,
) -> Rule
where
    F: AsyncFn(StoreSetup) -> Result<Arc<dyn ConversationStore>>,
{
    let limits = Retention::FOREVER.ttl_seconds(60).max_messages(100_000);
    let policy = StorePolicy::default().retention(limits);
    let store = at.open_with(policy).await?;
    let utterance = store.append_message(said(0)).await?;
    store.append_all(numbered(1..=5_000)).await?;
    at.set_clock("2025-08-24T17:00:00Z");
    let all = || store.read(crate::store::ReadQuery::Seqs(1..=9_000));
    let mut new = Vec::new();
    let mut stored = vec![5_001];
    for _ in 0..2 {
        new.push(store.append_message(said_at("new", "2025-08-24T17:00:00Z")).await?.seq);
        // Without limits too: what has expired once is not shown again.
        for store in [&store, &at.open().await?] {
            same!(seqs(store.read_tail(9_000).await)?, new);
            same!(seqs(store.read_seqs(1..=9_000).await)?, new);
            same!(seqs(store.read_times(Timestamp::MIN..Timestamp::MAX).await)?, new);
        }
        refused!(store.append_answers(answer("late"), &utterance).await, Error::UtteranceForgotten);
        stored.push(seqs(all().await)?.len());
    }
    // Each append deletes some of them, and no more than a batch.
    holds!(stored.is_sorted_by(|before, after| before > after && before - after <= 4_096));
    same!(stored.last(), Some(&2));
    Ok(())
}
