//! A chat on the `SQLite` store: with limits, snapshots, summaries and forgetting.

use std::sync::Arc;

use sottovoce::store::{HiddenMessages, RestoreThreads, Retention, StorePolicy};
use sottovoce::{Conversation, ConversationStore, ManualClock, Scope};

use super::common::scripted::Scripted;
use super::sqlite_store::SqliteStore;

#[tokio::test]
async fn a_chat_holds_over_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("chat.db");
    let clock = Arc::new(ManualClock::at_utc("2025-08-24T16:36:25Z".parse().unwrap()));
    let open = || {
        let policy = StorePolicy::default();
        let store = SqliteStore::open(&file, Scope::Default, clock.clone(), policy).unwrap();
        Arc::new(store) as Arc<dyn ConversationStore>
    };
    let store = open();
    let model = Arc::new(Scripted::default());
    let talk = Conversation::builder(store.clone())
        .system("You are a voice.")
        .model(model.clone())
        .build();
    let ask = async |question: &str, answer: &str| {
        model.says(answer);
        clock.advance(jiff::SignedDuration::from_secs(1));
        talk.ask(question).await.unwrap().whole().await.unwrap();
    };
    let texts = async || -> Vec<String> {
        let all = open().read_tail(99).await.unwrap();
        all.messages.iter().map(|stored| stored.message.content.clone()).collect()
    };
    ask("My cat is Mia.", "Nice name.").await;
    ask("She is grey.", "A grey cat.").await;
    ask("What is she called?", "Mia.").await;
    assert!(model.read(2).iter().any(|said| said.contains("My cat is Mia.")), "it is recalled");

    // A snapshot, a cleared context, and the restored messages.
    model.says("About a cat.");
    let snapshot = talk.save_snapshot(Some("The cat".into())).await.unwrap();
    assert_eq!(snapshot.messages.len(), 6);
    store.clear().await.unwrap();
    ask("And now?", "Nothing.").await;
    let last = model.requests.lock().unwrap().len() - 1;
    let sent = model.read(last);
    assert!(!sent.iter().any(|said| said.contains("Mia")), "{sent:?}");
    let now = sottovoce::Clock::now(&*clock);
    let since = now.timestamp();
    let restored =
        store.restore(&snapshot.id, since, RestoreThreads::default(), now).await.unwrap();
    assert_eq!(restored.len(), 6);

    // A summary replaces messages, and is deleted when one of them is forgotten.
    model.says("The user has a grey cat, Mia.");
    talk.summarize(2).await.unwrap();
    assert!(open().profile().await.unwrap().summary(None).is_some());
    let plan = store.plan_forget(&[1..=1]).await.unwrap();
    assert_eq!((plan.messages.len(), plan.copies.len(), plan.summaries), (1, 1, 1));
    assert_eq!(plan.changed_snapshots, std::slice::from_ref(&snapshot.id));
    store.forget_planned(&plan).await.unwrap();
    assert!(!texts().await.iter().any(|text| text.contains("Mia is")), "forgotten");
    assert!(!texts().await.contains(&"My cat is Mia.".to_owned()));
    assert!(open().profile().await.unwrap().summary(None).is_none());
    assert_eq!(store.read_snapshot(&snapshot.id).await.unwrap().unwrap().messages.len(), 5);

    // Limits hide at once, and a cleanup deletes.
    let four = Some(Retention::FOREVER.max_messages(4));
    let effect = store.limits_effect(four).await.unwrap();
    assert!(effect.hides.messages > 0);
    store.change_limits(four, HiddenMessages::Keep, &effect).await.unwrap();
    assert!(texts().await.len() <= 4);
    assert!(store.cleanup().await.unwrap().removed > 0);
    ask("Still there?", "Yes.").await;
    assert_eq!(texts().await.last().map(String::as_str), Some("Yes."));
    store.forget_all().await.unwrap();
    assert!(texts().await.is_empty());
    assert!(!std::fs::read(&file).unwrap().windows(3).any(|bytes| bytes == b"Mia"));
}
