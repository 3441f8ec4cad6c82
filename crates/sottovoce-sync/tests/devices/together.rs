//! What else a device may do while it syncs

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use sottovoce::export::{ExportForm, ExportRange, Exporter};
use sottovoce::import::Backup;
use sottovoce::store::{SavedMessage, Snapshot};
use sottovoce::{ChatMessage, ChatRole, Clock, ConversationStore, Scope};
use sottovoce_sync::{Background, SyncError};
use tokio::runtime::Handle;

use crate::home::{Home, new_folder};
use crate::house::{Fate, Machine, devices};

/// What happens in the middle of a sync.
type Work = fn(Arc<Home>) -> BoxFuture<'static, ()>;

/// Does some work at each of the requests of a sync, one sync for each, and checks that both devices end with the same.
async fn at_each_request(work: Work) {
    for at in 0.. {
        let [one, two] = devices().await;
        one.say("of one").await;
        two.say("of two").await;
        two.sync().await;
        let count = Arc::new(AtomicUsize::new(0));
        let (asked, home, runtime) = (Arc::clone(&count), Arc::clone(&one.home), Handle::current());
        one.remote.decide(move |_, _| {
            if asked.fetch_add(1, Ordering::SeqCst) == at {
                tokio::task::block_in_place(|| runtime.block_on(work(Arc::clone(&home))));
            }
            Fate::Pass
        });
        let outcome = one.try_sync().await;
        one.remote.decide(|_, _| Fate::Pass);
        if count.load(Ordering::SeqCst) <= at {
            assert!(at > 4, "a sync has more requests than {at}");
            return;
        }
        drop(outcome);
        for machine in [&one, &two, &one, &two] {
            machine.sync().await;
        }
        let words = one.words().await;
        assert_eq!(words, two.words().await, "at request {at}");
        let mut once = words.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), words.len(), "at request {at}: {words:?}");
        one.say("afterwards").await;
        one.sync().await;
        two.sync().await;
        assert_eq!(two.words().await.last().unwrap(), "afterwards", "at request {at}");
    }
}

async fn say(home: &Home, text: &str) {
    home.clock.advance(SignedDuration::from_secs(1));
    let message = ChatMessage::at(ChatRole::User, text, home.clock.now().timestamp());
    home.store(&Scope::Default).await.append_message(message).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_may_speak_while_it_syncs() {
    at_each_request(|home| Box::pin(async move { say(&home, "meanwhile").await })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_may_be_forgotten_while_it_syncs() {
    at_each_request(|home| {
        Box::pin(async move {
            let store = home.store(&Scope::Default).await;
            store.forget_all().await.unwrap();
        })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_may_be_packed_while_it_syncs() {
    at_each_request(|home| {
        Box::pin(async move {
            say(&home, "before packing").await;
            home.store(&Scope::Default).await.pack(|_| {}).await.unwrap();
        })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_may_be_imported_while_it_syncs() {
    at_each_request(|home| {
        Box::pin(async move {
            let folder = new_folder();
            let other = Arc::new(Home::new(folder.path().join("other"), Arc::clone(&home.clock)));
            let at: Timestamp = "2025-01-01T00:00:00Z".parse().unwrap();
            let said = |number| ChatMessage::at(ChatRole::User, format!("imported {number}"), at);
            let store = other.store(&Scope::Default).await;
            store.import((0..100).map(said).collect()).await.unwrap();
            let export = folder.path().join("export.json");
            let mut exporter = Exporter::to_file(ExportForm::Json, &export).unwrap();
            exporter.add(&store, ExportRange::default(), |_| {}).await.unwrap();
            exporter.finish().await.unwrap();
            let open = Box::new(move |scope: Scope| {
                let home = Arc::clone(&home);
                Box::pin(async move { Ok(home.store(&scope).await) }) as _
            });
            Backup::new(&export).import(open, |_| {}, |_| {}).await.unwrap();
        })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_may_be_saved_and_the_key_changed_while_it_syncs() {
    at_each_request(|home| {
        Box::pin(async move {
            let store = home.store(&Scope::Default).await;
            let tail = store.read_tail(1).await.unwrap();
            let saved = tail.messages.iter().map(|m| SavedMessage::new(m.seq, m.message.clone()));
            let now = home.clock.now().timestamp();
            let snapshot = Snapshot::new(now, (now, now), saved.collect()).unwrap();
            store.save_snapshot(snapshot).await.unwrap();
            drop(store);
            home.rekey().await;
        })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_processes_of_one_device_one_syncs() {
    let [one, two] = devices().await;
    for number in 0..20 {
        one.say(&format!("said {number}")).await;
        let (first, second) = (one.second_process(), one.second_process());
        let syncs = [
            tokio::spawn(async move { first.sync(|_| {}).await }),
            tokio::spawn(async move { second.poll().await }),
        ];
        let mut done = 0;
        for sync in syncs {
            match sync.await.unwrap() {
                Ok(report) => {
                    assert!(!report.began_again);
                    done += 1;
                }
                Err(error) => assert!(matches!(error, SyncError::Busy), "{error}"),
            }
        }
        assert!(done > 0);
    }
    two.sync().await;
    assert_eq!(two.words().await.len(), 20);
    check_status(&one).await;
}

async fn check_status(machine: &Machine) {
    let status = machine.syncer.status().await.unwrap();
    assert_eq!((status.unpublished, status.is_closed), (0, false));
}

#[tokio::test]
async fn what_is_said_right_before_a_host_ends_is_published() {
    let [one, two] = devices().await;
    let background = Background::new(Arc::new(one.second_process()), Duration::from_secs(60));
    let running = background.run(|_| {});
    drop(tokio::time::timeout(Duration::from_millis(300), running).await);
    one.say("last words").await;
    background.finish(Duration::from_secs(60)).await;
    assert_eq!(two.sync().await.received, 1);
    // A remote that does not answer keeps no host from ending.
    one.say("after that").await;
    one.remote.decide(|_, _| Fate::Die);
    background.finish(Duration::from_millis(100)).await;
    one.remote.decide(|_, _| Fate::Pass);
    assert_eq!(one.sync().await.published, 1);
}
