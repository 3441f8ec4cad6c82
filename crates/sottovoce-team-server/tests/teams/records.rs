//! Records: appended, read, waited for, forgotten

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::harness::{Setup, base64, engines, forgetting, message, rid};

#[tokio::test]
async fn records_come_back_in_the_order_of_their_positions() {
    for engine in engines().await {
        let (_server, owner) = Setup::new(engine).start_with_owner().await;
        let conversation = owner.conversation().await;
        assert_eq!(
            owner.append(conversation, (0..30).map(message).collect()).await,
            (1..=30).collect::<Vec<_>>()
        );
        let records = owner.read(conversation).await;
        assert_eq!(records.len(), 30);
        for (n, record) in (0..).zip(&records) {
            assert_eq!(record["pos"], n + 1);
            assert_eq!(record["rid"], rid(n).to_string());
            assert_eq!(record["sealed"], message(n)["sealed"]);
            assert_eq!(record["at"], "2026-11-24T12:00:00Z");
        }
        let page = owner
            .get(&format!("context/conversations/{conversation}?after=10&limit=3"))
            .await
            .json();
        assert_eq!(page["records"][0]["pos"], 11);
        assert_eq!((page["records"].as_array().unwrap().len(), &page["last"]), (3, &json!(30)));
    }
}

#[tokio::test]
async fn a_request_that_is_repeated_changes_nothing() {
    for engine in engines().await {
        let (_server, owner) = Setup::new(engine).start_with_owner().await;
        let conversation = owner.conversation().await;
        let records: Vec<_> = (0..20).map(message).collect();
        let first = owner.append(conversation, records.clone()).await;
        assert_eq!(owner.append(conversation, records).await, first);
        // A record that is there keeps its contents.
        let other =
            json!({ "rid": rid(3), "kind": "message", "sealed": base64(b"something else") });
        assert_eq!(owner.append(conversation, vec![other, message(99)]).await, [4, 21]);
        let records = owner.read(conversation).await;
        assert_eq!((records.len(), &records[3]["sealed"]), (21, &message(3)["sealed"]));
    }
}

#[tokio::test]
async fn what_was_forgotten_is_empty_and_stays_away() {
    for engine in engines().await {
        let (_server, owner) = Setup::new(engine).start_with_owner().await;
        let conversation = owner.conversation().await;
        owner.append(conversation, (0..5).map(message).collect()).await;
        // Record 70 is still on its way from a device.
        let forget = forgetting(50, &[1, 3, 70]);
        assert_eq!(owner.append(conversation, vec![forget.clone()]).await, [7]);
        assert_eq!(owner.append(conversation, vec![forget]).await, [7]);
        assert_eq!(
            owner.append(conversation, vec![message(70), message(1), message(5)]).await,
            [6, 2, 8]
        );
        let records = owner.read(conversation).await;
        let is_there: Vec<bool> =
            records.iter().map(|record| record.get("sealed").is_some()).collect();
        assert_eq!(is_there, [true, false, true, false, true, false, false, true]);
        assert_eq!(records[6]["kind"], "forgetting");
        assert_eq!(records[6]["forgets"], json!([rid(1), rid(3), rid(70)]));
        // What a forgetting names cannot be a forgetting.
        owner.append(conversation, vec![forgetting(51, &[50])]).await;
        assert_eq!(owner.read(conversation).await[6]["forgets"], json!([rid(1), rid(3), rid(70)]));
        let organisation = owner.get("").await.json();
        let bytes: usize = [0, 2, 4, 5].iter().map(|n| format!("sealed {n}").len()).sum();
        assert_eq!(organisation["bytes"], bytes);
    }
}

#[tokio::test]
async fn who_waits_is_told_at_once_also_by_another_server() {
    for engine in engines().await {
        let setup = Setup::new(engine);
        let (server, owner) = setup.start_with_owner().await;
        let other = setup.start().await;
        let conversation = owner.conversation().await;
        owner.append(conversation, vec![message(0)]).await;
        for (n, writer) in (1..).zip([owner.clone(), owner.at(&other)]) {
            let (waiting, path) = (
                owner.clone(),
                format!("context/conversations/{conversation}/changes?after={n}&wait=30"),
            );
            let waiting = tokio::spawn(async move { waiting.get(&path).await });
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert!(!waiting.is_finished());
            let began = Instant::now();
            writer.append(conversation, vec![message(n)]).await;
            let page = waiting.await.unwrap().json();
            assert_eq!(page["records"][0]["pos"], n + 1);
            assert!(began.elapsed() < Duration::from_secs(30), "it waited to the end");
        }
        // Nothing happens: an empty page in time.
        let began = Instant::now();
        let page = owner
            .get(&format!("context/conversations/{conversation}/changes?after=3&wait=1"))
            .await
            .json();
        assert_eq!(page, json!({ "records": [], "last": 3 }));
        assert!((900..5000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
        // A server that stops keeps nobody waiting.
        let (waiting, path) = (
            owner.clone(),
            format!("context/conversations/{conversation}/changes?after=3&wait=30"),
        );
        let waiting = tokio::spawn(async move { waiting.get(&path).await });
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.stop.cancel();
        assert_eq!(waiting.await.unwrap().status, 200);
        server.task.await.unwrap();
    }
}

#[tokio::test]
async fn who_waits_for_any_conversation_is_told_of_each() {
    for engine in engines().await {
        let setup = Setup::new(engine);
        let (_server, owner) = setup.start_with_owner().await;
        let other = setup.start().await;
        let member = owner.invite("member", json!([])).await;
        let conversation = owner.conversation().await;
        let mut seen = member.get("context/conversations").await.json()["seen"].clone();
        for (n, writer) in (0..4).zip([owner.clone(), owner.at(&other)].into_iter().cycle()) {
            let path = format!("context/conversations?wait=30&seen={}", seen.as_str().unwrap());
            let waiting = member.clone();
            let waiting = tokio::spawn(async move { waiting.get(&path).await });
            tokio::time::sleep(Duration::from_millis(200)).await;
            assert!(!waiting.is_finished(), "{n}");
            match n {
                0 => {
                    let path = format!("context/conversations/{conversation}/grants/{}", member.id);
                    assert_eq!(owner.put(&path, json!({ "level": "read" })).await.status, 204);
                }
                _ => drop(writer.append(conversation, vec![message(n)]).await),
            }
            let list = waiting.await.unwrap().json();
            assert_eq!(list["conversations"][0]["last"], n);
            seen = list["seen"].clone();
        }
    }
}
