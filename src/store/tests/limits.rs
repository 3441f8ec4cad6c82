//! What limits cost, and what they hide after a failure.

use std::num::NonZeroU64;
use std::sync::Arc;

use jiff::SignedDuration;

use crate::ChatRole;
use crate::clock::Clock;
use crate::directory::memory::MemoryDirectory;
use crate::store::tests::failing_storage::{Call, FaultyDirectory, broken};
use crate::store::tests::interrupted_documents::{clock, copied, exchanges, open, options, say};
use crate::store::{ConversationStore, FileConversationStore, Profile, Retention};

const MINUTE: Retention = Retention { max_messages: None, ttl_seconds: NonZeroU64::new(60) };

fn many(
    clock: &crate::clock::ManualClock,
    numbers: std::ops::Range<usize>,
) -> Vec<crate::ChatMessage> {
    let role = |n: usize| if n.is_multiple_of(2) { ChatRole::User } else { ChatRole::Assistant };
    numbers.map(|n| say(clock, role(n), format!("old {n}"))).collect()
}

async fn seqs(store: &FileConversationStore) -> Vec<u64> {
    let read = store.read_tail(usize::MAX).await.unwrap();
    read.messages.iter().map(|stored| stored.seq).collect()
}

#[tokio::test]
async fn a_limit_costs_no_more_the_longer_the_conversation_and_the_limit() {
    let mut costs = Vec::new();
    for length in [2_000_u32, 12_000] {
        for most in [0, 1_000_000, length - 5, length - 900] {
            let clock = clock();
            let memory = Arc::new(MemoryDirectory::default());
            let opts = || options(&clock).retention(Retention::FOREVER.max_messages(most));
            let store = open(options(&clock), &memory).await;
            for part in 0..length as usize / 2_000 {
                store.append_all(many(&clock, part * 2_000..part * 2_000 + 2_000)).await.unwrap();
            }
            drop(store);
            let faulty = FaultyDirectory::over(memory.clone());
            let store = open(opts(), &faulty).await;
            let shown = store.read_tail(4).await.unwrap();
            assert_eq!(shown.messages.len(), 4);
            let read = faulty.counted().0;
            store.append_message(say(&clock, ChatRole::User, "first")).await.unwrap();
            let before = faulty.counted().0;
            store.append_message(say(&clock, ChatRole::User, "next")).await.unwrap();
            let appended = faulty.counted().0 - before;
            let kept = store.reader().known().unwrap().messages().count();
            assert!(kept <= 256, "{kept} messages stay in memory");
            costs.push((length, most, read, appended));
        }
    }
    let without = costs[0];
    for (length, most, read, appended) in &costs {
        assert!(*read <= without.2 + 40, "a limit of {most} in {length}: {costs:?}");
        assert!(*appended <= without.3 + 8, "a limit of {most} in {length}: {costs:?}");
    }
}

#[tokio::test]
async fn a_long_conversation_that_expires_stays_hidden_whatever_fails() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let opts = || options(&clock).retention(MINUTE);
    let store = open(opts(), &memory).await;
    store.append_all(many(&clock, 0..4_200)).await.unwrap();
    drop(store);
    clock.advance(SignedDuration::from_hours(1));
    let (mut bad, mut reached) = (Vec::new(), 0);
    for after in (0..400).step_by(8) {
        let copy = copied(&memory);
        let faulty = FaultyDirectory::over(copy.clone());
        let store = open(opts(), &faulty).await;
        faulty.fail(Call::Any, after, usize::MAX, broken);
        let first = store.append_message(say(&clock, ChatRole::User, "new")).await;
        if !faulty.was_reached() {
            break;
        }
        reached += 1;
        drop(store);
        let store = open(opts(), &copy).await;
        let there = seqs(&store).await;
        if there.iter().any(|seq| *seq <= 4_200) || (first.is_ok() && there.is_empty()) {
            bad.push((after, first.is_ok(), there));
        }
    }
    assert!(reached > 5 && bad.is_empty(), "{reached}: {bad:?}");
}

#[tokio::test]
async fn an_append_removes_no_more_than_a_batch_of_what_has_expired() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let opts = || options(&clock).retention(MINUTE);
    let store = open(opts(), &memory).await;
    store.append_all(many(&clock, 0..10_000)).await.unwrap();
    clock.advance(SignedDuration::from_hours(1));
    let other = open(opts(), &memory).await;
    let mut stored = Vec::new();
    let mut new = Vec::new();
    for n in 0..4 {
        let writer = if n % 2 == 0 { &store } else { &other };
        new.push(writer.append_message(say(&clock, ChatRole::User, n)).await.unwrap().seq);
        for reader in [&store, &other, &open(opts(), &memory).await] {
            assert_eq!(seqs(reader).await, new);
            assert_eq!(reader.stats().await.unwrap().message_count, n + 1);
        }
        let report = store.verify(|_| {}).await.unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        stored.push(report.messages);
    }
    assert_eq!(stored, [10_000 - 4_096 + 1, 10_000 - 8_192 + 2, 3, 4]);
    // They expire again, few at once.
    clock.advance(SignedDuration::from_hours(1));
    let last = store.append_message(say(&clock, ChatRole::User, "last")).await.unwrap().seq;
    assert_eq!(seqs(&other).await, [last]);
}

#[tokio::test]
async fn what_expired_stays_hidden_in_a_copy_that_a_backup_makes() {
    let clock = clock();
    let store =
        open(options(&clock).retention(MINUTE), &Arc::new(MemoryDirectory::default())).await;
    store.append_all(many(&clock, 0..5_000)).await.unwrap();
    clock.advance(SignedDuration::from_hours(1));
    exchanges(&store, &clock, 1..=1).await;
    let profile = store.profile().await.unwrap();
    assert_eq!(profile.expired, 5_000);
    assert_eq!(
        profile.clamped_to(10, clock.now().timestamp(), clock.now().timestamp()).expired,
        10
    );
}

#[tokio::test]
async fn a_conversation_with_more_deleted_artifacts_than_a_record_holds_can_still_forget() {
    let clock = clock();
    let memory = Arc::new(MemoryDirectory::default());
    let store = open(options(&clock), &memory).await;
    exchanges(&store, &clock, 1..=3).await;
    store
        .write(|writer| {
            writer.locked(|committer, tail, _| {
                committer.change_profile(tail, |profile| {
                    for n in 0..300_000_u32 {
                        profile.artifacts.insert(format!("{n:032x}"), String::new());
                    }
                })
            })
        })
        .await
        .unwrap();
    assert_eq!(store.forget(&[1..=2]).await.unwrap().removed, [1, 2]);
    drop(store);
    let store = open(options(&clock), &memory).await;
    let profile = store.profile().await.unwrap();
    assert!(profile.has_had_artifact(&format!("{:032x}", 299_999)));
    assert_eq!(seqs(&store).await, [3, 4, 5, 6]);
    let report = store.verify(|_| {}).await.unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[tokio::test]
async fn settings_that_people_write_have_their_limit_still() {
    let store = open(options(&clock()), &Arc::new(MemoryDirectory::default())).await;
    let text = "x".repeat(12 << 20);
    let title = Box::new(move |profile: &mut Profile| profile.title = Some(text.clone()));
    let refused = store.change_profile(title).await;
    assert!(matches!(refused, Err(crate::Error::InvalidMessage { .. })), "{refused:?}");
}
