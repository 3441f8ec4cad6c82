//! Limits: large, endless and slow requests, many of them, and more than may be stored

use std::time::Duration;

use serde_json::json;
use sottovoce_team_server::api::{Id, MAX_ARTIFACT, MAX_BODY, MAX_SEALED};
use sottovoce_team_server::{Limits, Rate};
use tokio::time::Instant;

use crate::harness::{Setup, base64, engines, forgetting, message, rid};
use crate::hostile_clients::{Hostile, is_alone};
use crate::http::Connection;

#[tokio::test]
async fn what_is_larger_than_allowed_is_refused_and_changes_nothing() {
    for engine in engines().await {
        let (_server, owner) = Setup::new(engine).start_with_owner().await;
        let conversation = owner.conversation().await;
        let path = format!("context/conversations/{conversation}/messages");
        let post = async |records: Vec<serde_json::Value>| {
            owner.post(&path, json!({ "records": records })).await.status
        };
        let sealed =
            |bytes| json!({ "rid": rid(1), "kind": "message", "sealed": base64(&vec![0; bytes]) });
        assert_eq!(post((0..1001).map(message).collect()).await, 413);
        assert_eq!(post(vec![sealed(MAX_SEALED + 1)]).await, 413);
        assert_eq!(post(vec![forgetting(1, &(0..1001).collect::<Vec<_>>())]).await, 413);
        let halves = [
            forgetting(1, &(0..600).collect::<Vec<_>>()),
            forgetting(2, &(600..1200).collect::<Vec<_>>()),
        ];
        assert_eq!(post(halves.to_vec()).await, 413);
        assert_eq!(post(vec![message(1), message(1)]).await, 409);
        for wrong in [vec![], vec![sealed(0)], vec![forgetting(1, &[])]] {
            assert_eq!(post(wrong).await, 400);
        }
        assert!(owner.read(conversation).await.is_empty());
        assert_eq!(post((0..1000).map(message).collect()).await, 200);
        let mut largest = sealed(MAX_SEALED);
        largest["rid"] = json!(rid(5000));
        assert_eq!(post(vec![largest]).await, 200);
        let too_long =
            owner.call_bytes("POST", &owner.path("tokens"), &vec![b' '; 200 << 10]).await;
        assert_eq!(too_long.status, 413);
        let profile = json!({ "profile": base64(&[0; 2000]) });
        assert_eq!(owner.patch(&format!("members/{}", owner.id), profile).await.status, 413);
    }
}

#[tokio::test]
async fn a_page_of_large_records_is_cut_by_its_bytes() {
    for engine in engines().await {
        let (_server, owner) = Setup::new(engine).start_with_owner().await;
        let conversation = owner.conversation().await;
        for n in 0..12 {
            let record = json!({ "rid": rid(n), "kind": "message", "sealed": base64(&vec![n as u8; MAX_SEALED]) });
            owner.append(conversation, vec![record]).await;
        }
        let page = owner.get(&format!("context/conversations/{conversation}")).await;
        assert_eq!(page.json()["records"].as_array().unwrap().len(), 4);
        assert_eq!(owner.read(conversation).await.len(), 12);
    }
}

#[tokio::test]
async fn an_endless_body_ends_at_the_limit() {
    for engine in engines().await {
        let (server, owner) = Setup::new(engine).start_with_owner().await;
        let conversation = owner.conversation().await;
        let path = owner.path(&format!("context/conversations/{conversation}/messages"));
        for (token, expected) in [(owner.token.as_str(), 413), ("", 401)] {
            let mut connection = Connection::open(server.address).await.unwrap();
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nTransfer-Encoding: chunked\r\n\r\n"
            );
            connection.send(head.as_bytes()).await.unwrap();
            let mut chunk = b"10000\r\n".to_vec();
            chunk.extend(vec![b' '; 0x10000]);
            chunk.extend(b"\r\n");
            let mut sent = 0;
            let answer = loop {
                tokio::select! {
                    biased;
                    answer = connection.answer() => break answer,
                    () = tokio::time::sleep(Duration::from_millis(1)) => {}
                }
                if connection.send(&chunk).await.is_err() {
                    break connection.answer().await;
                }
                sent += 0x10000;
                assert!(sent < 4 * MAX_BODY, "no end after {sent} bytes");
            };
            // The answer may be lost when the server closes on a client that still writes.
            if let Ok(answer) = answer {
                assert_eq!(answer.status, expected);
            }
        }
        // A length that lies is not waited for.
        let mut connection = Connection::open(server.address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: 99999999999\r\n\r\n",
            owner.token
        );
        connection.send(head.as_bytes()).await.unwrap();
        assert_eq!(connection.answer().await.unwrap().status, 413);
    }
}

#[tokio::test]
async fn a_slow_head_or_body_ends_in_time() {
    for engine in engines().await {
        let mut setup = Setup::new(engine);
        setup.limits.net.head = Duration::from_millis(500);
        setup.limits.net.body = Duration::from_millis(500);
        let (server, owner) = setup.start_with_owner().await;
        let began = Instant::now();
        let mut silent = Connection::open(server.address).await.unwrap();
        let mut head = Connection::open(server.address).await.unwrap();
        head.send(b"GET /health HTTP/1.1\r\nHos").await.unwrap();
        let mut body = Connection::open(server.address).await.unwrap();
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: 10\r\n\r\n{{",
            owner.path("tokens"),
            owner.token
        );
        body.send(request.as_bytes()).await.unwrap();
        assert_eq!(body.answer().await.unwrap().status, 408);
        assert!(silent.answer().await.is_err());
        assert!(head.answer().await.map_or(true, |answer| answer.status == 408));
        assert!(began.elapsed() < Limits::default().net.head);
    }
}

#[tokio::test]
async fn a_long_head_is_refused() {
    let (server, owner) = Setup::new(engines().await.remove(0)).start_with_owner().await;
    for head in [format!("X: {}\r\n", "x".repeat(300 << 10)), "X: y\r\n".repeat(200)] {
        let mut connection = Connection::open(server.address).await.unwrap();
        drop(connection.send(format!("GET /health HTTP/1.1\r\n{head}\r\n").as_bytes()).await);
        if let Ok(answer) = connection.answer().await {
            assert_eq!(answer.status, 431);
        }
    }
    assert_eq!(owner.get("").await.status, 200);
}

#[tokio::test]
async fn whoever_asks_too_often_is_told_when_to_come_back() {
    for engine in engines().await {
        let mut setup = Setup::new(engine);
        setup.limits.member_requests = Rate { per_second: 0.5, burst: 10.0 };
        setup.limits.org_requests = Rate { per_second: 0.5, burst: 15.0 };
        setup.limits.strangers = Rate { per_second: 0.5, burst: 5.0 };
        let (server, owner) = setup.start_with_owner().await;
        let member = owner.invite("member", json!([])).await;
        let ask = async |who: &crate::harness::Member| {
            for n in 0..30 {
                let answer = who.get("").await;
                if answer.status == 429 {
                    let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
                    assert!((1..=2).contains(&seconds));
                    return n;
                }
                assert_eq!(answer.status, 200);
            }
            panic!("no limit");
        };
        assert!((9..=10).contains(&ask(&owner).await), "of the member: one was used to invite");
        assert!((3..=6).contains(&ask(&member).await), "of the organisation");
        // Another organisation is not touched, and strangers do not lock members out.
        let other = server.owner().await;
        let stranger = crate::harness::Member { token: "x".to_owned(), ..other.clone() };
        let mut statuses = Vec::new();
        for _ in 0..8 {
            statuses.push(stranger.get("").await.status);
        }
        assert!(statuses.contains(&401) && statuses.contains(&429), "{statuses:?}");
        assert_eq!(other.get("").await.status, 200);
    }
}

#[tokio::test]
async fn an_organisation_stores_no_more_than_its_quota() {
    for engine in engines().await {
        let mut setup = Setup::new(engine);
        setup.quotas.bytes = 100_000;
        setup.quotas.conversations = 3;
        setup.quotas.members = 2;
        setup.quotas.tokens = 4;
        setup.quotas.invitations = 2;
        let (_server, owner) = setup.start_with_owner().await;
        let conversation = owner.conversation().await;
        let path = format!("context/conversations/{conversation}/messages");
        let record = |n| json!({ "records": [{ "rid": rid(n), "kind": "message", "sealed": base64(&[0; 40_000]) }] });
        assert_eq!(owner.post(&path, record(1)).await.status, 200);
        assert_eq!(owner.post(&path, record(2)).await.status, 200);
        let refused = owner.post(&path, record(3)).await;
        assert_eq!((refused.status, &refused.json()["code"]), (429, &json!("quota")));
        assert!(refused.header("retry-after").is_some());
        let artifact =
            format!("context/conversations/{conversation}/artifacts/{}", Id::random().unwrap());
        assert_eq!(owner.call_bytes("PUT", &owner.path(&artifact), &[0; 40_000]).await.status, 429);
        for _ in 0..2 {
            owner.conversation().await;
        }
        assert_eq!(owner.post("context/conversations", json!({})).await.status, 409);
        for expected in [201, 201, 201, 409] {
            assert_eq!(owner.post("tokens", json!({})).await.status, expected);
        }
        owner.invite("member", json!([])).await;
        let full = owner.post("invitations", json!({ "role": "member" })).await.json();
        let accept = json!({ "invitation": full["invitation"] });
        assert_eq!(owner.call("POST", "/api/v1/invitations/accept", accept).await.status, 409);
        for expected in [201, 409] {
            assert_eq!(
                owner.post("invitations", json!({ "role": "member" })).await.status,
                expected
            );
        }
    }
}

#[tokio::test]
async fn silent_connections_keep_nobody_out() {
    let mut setup = Setup::new(engines().await.remove(0));
    setup.limits.net.connections = 200;
    setup.limits.net.strangers = 50;
    setup.limits.net.strangers_from_one_address = 50;
    let (server, owner) = setup.start_with_owner().await;
    let mut silent = Vec::new();
    // The system's limit of open files may come before ten thousand; both ends are in this process.
    for n in 0..10_000 {
        if n >= 400 {
            silent.remove(0);
        }
        silent.push(Connection::open(server.address).await.unwrap());
        if n % 1000 == 0 {
            assert_eq!(owner.get("").await.status, 200);
        }
    }
    assert_eq!(owner.get("").await.status, 200);
    drop(silent);
}

#[tokio::test]
async fn without_memory_for_a_body_the_client_is_asked_to_come_back() {
    let mut setup = Setup::new(engines().await.remove(0));
    setup.limits.net.memory = 1 << 20;
    let (server, owner) = setup.start_with_owner().await;
    let conversation = owner.conversation().await;
    let path = owner.path(&format!("context/conversations/{conversation}/messages"));
    let mut first = Connection::open(server.address).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: 900000\r\n\r\n{{",
        owner.token
    );
    first.send(head.as_bytes()).await.unwrap();
    // What came holds memory, not what was announced.
    first.send(&[b' '; 800_000]).await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let busy = owner.call_bytes("POST", &path, &vec![b' '; 900_000]).await;
    assert_eq!((busy.status, busy.header("retry-after")), (503, Some("1")));
    drop(first);
    tokio::time::sleep(Duration::from_millis(200)).await;
    owner.append(conversation, vec![message(1)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_ask_nothing_take_little_memory_and_no_time_of_others() {
    if !is_alone("limits::connections_that_ask_nothing_take_little_memory_and_no_time_of_others") {
        return;
    }
    let (server, owner) = Setup::new(engines().await.remove(0)).start_with_owner().await;
    let ask = async || assert_eq!(owner.get("").await.status, 200);
    let hostile = Hostile::of(server.address, ask).await;
    hostile.endless_heads(100).await;
    hostile.silent(5000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_and_unread_answers_take_no_more_memory_than_is_allowed_and_no_time_of_others() {
    if !is_alone(
        "limits::bodies_and_unread_answers_take_no_more_memory_than_is_allowed_and_no_time_of_others",
    ) {
        return;
    }
    let mut setup = Setup::new(engines().await.remove(0));
    setup.limits.net.memory = 40 << 20;
    let (server, owner) = setup.start_with_owner().await;
    let conversation = owner.conversation().await;
    let path = owner.path(&format!("context/conversations/{conversation}"));
    let artifact = format!("{path}/artifacts/{}", Id::random().unwrap());
    let stored = owner.call_bytes("PUT", &artifact, &vec![7; MAX_ARTIFACT]).await;
    assert_eq!(stored.status, 204);
    let ask = async || assert_eq!(owner.get("").await.status, 200);
    let hostile = Hostile::of(server.address, ask).await;
    let head = |method: &str, path: &str| {
        format!("{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n", owner.token)
    };
    hostile.unread(&format!("{}\r\n", head("GET", &artifact)), 255).await;
    hostile.unfinished(&head("POST", &format!("{path}/messages")), 40, MAX_BODY - 1).await;
    hostile.unfinished(&head("PUT", &artifact), 40, MAX_ARTIFACT - 1).await;
}

#[tokio::test]
async fn behind_a_proxy_one_who_guesses_does_not_use_up_what_others_may() {
    for engine in engines().await {
        let mut setup = Setup::new(engine);
        setup.limits.strangers = Rate { per_second: 0.1, burst: 3.0 };
        setup.limits.is_behind_proxy = true;
        let (server, _owner) = setup.start_with_owner().await;
        let guess = async |forwarded: &str| {
            let mut connection = Connection::open(server.address).await.unwrap();
            let secret = sottovoce_team_server::api::Secret::random().unwrap();
            let body = json!({ "invitation": secret.reveal().to_string() }).to_string();
            let head = format!(
                "POST /api/v1/invitations/accept HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {forwarded}\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            connection.send(format!("{head}{body}").as_bytes()).await.unwrap();
            connection.answer().await.unwrap().status
        };
        let mut statuses = Vec::new();
        for n in 0..5 {
            // What a client says of itself comes before what the proxy adds.
            statuses.push(guess(&format!("10.0.0.{n}, 192.0.2.1")).await);
        }
        assert_eq!(statuses, [404, 404, 404, 429, 429]);
        assert_eq!(guess("192.0.2.2").await, 404);
    }
}
