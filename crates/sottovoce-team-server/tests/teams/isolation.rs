//! Isolation: what belongs to another organisation or conversation answers like what does not exist

use serde_json::{Value, json};
use sottovoce_team_server::api::Id;
use sottovoce_team_server::routes;

use crate::harness::{Setup, engines, forgetting, message, rid};

/// Every route of an organisation with these identifiers.
fn requests(org: Id, conversation: Id, other: Id) -> Vec<(&'static str, String, Value)> {
    let body = |method: &str, path: &str| match path.rsplit('/').next().unwrap() {
        _ if !matches!(method, "POST" | "PUT" | "PATCH") => Value::Null,
        "messages" => json!({ "records": [message(1), forgetting(2, &[1])] }),
        "invitations" => {
            json!({ "role": "member", "grants": [{ "conversation": conversation, "level": "read" }] })
        }
        "{member}" if path.contains("grants") => json!({ "level": "read" }),
        "{member}" => json!({ "role": "member" }),
        "{artifact}" => json!("sealed"),
        _ => json!({}),
    };
    routes()
        .filter(|(_, path)| path.contains("{org}"))
        .map(|(method, path)| {
            let parts: Vec<String> = path
                .split('/')
                .map(|part| match part {
                    "{org}" => org.to_string(),
                    "{conversation}" => conversation.to_string(),
                    part if part.starts_with('{') => other.to_string(),
                    part => part.to_owned(),
                })
                .collect();
            (method, parts.join("/"), body(method, path))
        })
        .collect()
}

#[tokio::test]
async fn another_organisation_is_as_if_it_did_not_exist() {
    for engine in engines().await {
        let setup = Setup::new(engine);
        let (server, victim) = setup.start_with_owner().await;
        let stranger = server.owner().await;
        let conversation = victim.conversation().await;
        victim.append(conversation, vec![message(0)]).await;
        let artifact = Id::random().unwrap();
        let path = format!("context/conversations/{conversation}/artifacts/{artifact}");
        assert_eq!(victim.put(&path, json!("sealed")).await.status, 204);
        let token: Id = victim.get("").await.json()["token"].as_str().unwrap().parse().unwrap();
        let invitation = victim.post("invitations", json!({ "role": "member" })).await.json();
        let invitation: Id = invitation["id"].as_str().unwrap().parse().unwrap();
        let before = victim.get("audit").await.text();
        let nothing = Id::random().unwrap();
        for other in [victim.id, token, invitation, artifact] {
            // Under the victim's organisation, and under the stranger's own.
            let cases = [(victim.org, Id::random().unwrap()), (stranger.org, stranger.org)];
            for (org, absent_org) in cases {
                let real = requests(org, conversation, other);
                let absent = requests(absent_org, nothing, nothing);
                for ((method, path, body), (_, absent, absent_body)) in real.into_iter().zip(absent)
                {
                    let names_victim =
                        [conversation, other].iter().any(|id| path.contains(&id.to_string()))
                            || body.to_string().contains(&conversation.to_string());
                    if org == stranger.org && !names_victim {
                        continue;
                    }
                    let real = stranger.call(method, &path, body).await;
                    let absent = stranger.call(method, &absent, absent_body).await;
                    assert_eq!(
                        (real.status, real.text()),
                        (absent.status, absent.text()),
                        "{method} {path}"
                    );
                    assert_eq!(real.status, 404, "{method} {path}: {}", real.text());
                }
            }
        }
        assert_eq!(victim.get("audit").await.text(), before);
        assert_eq!(victim.read(conversation).await.len(), 1);
        assert_eq!(victim.get(&path).await.status, 200);
        assert_eq!(stranger.get("members").await.json()["members"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_member_of_another_organisation_is_granted_nothing() {
    for engine in engines().await {
        let (server, owner) = Setup::new(engine).start_with_owner().await;
        let stranger = server.owner().await;
        let conversation = owner.conversation().await;
        let path = format!("context/conversations/{conversation}/grants/{}", stranger.id);
        assert_eq!(owner.put(&path, json!({ "level": "read" })).await.status, 404);
        assert_eq!(
            stranger.get(&format!("context/conversations/{conversation}")).await.status,
            404
        );
    }
}

#[tokio::test]
async fn the_records_of_one_conversation_do_not_touch_another() {
    for engine in engines().await {
        let (_server, owner) = Setup::new(engine).start_with_owner().await;
        let (one, two) = (owner.conversation().await, owner.conversation().await);
        // The same identifiers in both.
        owner.append(one, vec![message(1), message(2)]).await;
        assert_eq!(owner.append(two, vec![message(2), message(1)]).await, [1, 2]);
        owner.append(one, vec![forgetting(3, &[1, 2])]).await;
        let contents = |records: Vec<Value>| -> Vec<Value> {
            records.into_iter().map(|record| record["sealed"].clone()).collect()
        };
        assert_eq!(contents(owner.read(one).await)[..2], [Value::Null, Value::Null]);
        assert_eq!(
            contents(owner.read(two).await),
            [message(2)["sealed"].clone(), message(1)["sealed"].clone()]
        );
        let artifact = Id::random().unwrap();
        assert_eq!(
            owner
                .put(&format!("context/conversations/{one}/artifacts/{artifact}"), json!(1))
                .await
                .status,
            204
        );
        assert_eq!(
            owner.get(&format!("context/conversations/{two}/artifacts/{artifact}")).await.status,
            404
        );
        assert_eq!(
            owner.delete(&format!("context/conversations/{two}/artifacts/{artifact}")).await.status,
            404
        );
    }
}

#[tokio::test]
async fn positions_devices_and_times_are_the_servers() {
    for engine in engines().await {
        let (_server, owner) = Setup::new(engine).start_with_owner().await;
        let conversation = owner.conversation().await;
        let path = format!("context/conversations/{conversation}/messages");
        for (name, value) in [
            ("pos", json!(7)),
            ("device", json!(Id::random().unwrap())),
            ("at", json!("1970-01-01T00:00:00Z")),
            ("size", json!(1)),
        ] {
            let mut record = message(1);
            record[name] = value;
            assert_eq!(
                owner.post(&path, json!({ "records": [record] })).await.status,
                400,
                "{name}"
            );
        }
        let own = owner.get("").await.json();
        owner.append(conversation, vec![message(1)]).await;
        let record = owner.read(conversation).await.remove(0);
        assert_eq!((&record["pos"], &record["device"]), (&json!(1), &own["device"]));
        // Positions beyond the end, and beyond all numbers.
        for after in ["2", "9223372036854775807"] {
            let page = owner
                .get(&format!("context/conversations/{conversation}?after={after}"))
                .await
                .json();
            assert_eq!(page, json!({ "records": [], "last": 1 }));
        }
        for after in ["-1", "9223372036854775808", "1e3", "0x1", "%27%20OR%201=1", ""] {
            let status = owner
                .get(&format!("context/conversations/{conversation}?after={after}"))
                .await
                .status;
            assert_eq!(status, 400, "{after}");
        }
    }
}

#[tokio::test]
async fn sql_in_every_string_is_no_identifier() {
    let evil = [
        "';DROP TABLE record;--",
        "1' OR '1'='1",
        "\\x00",
        "$1",
        "0x00'",
        "' UNION SELECT sha256 FROM token --",
        "\u{0}",
        "?1",
    ];
    for engine in engines().await {
        let (_server, owner) = Setup::new(engine).start_with_owner().await;
        let conversation = owner.conversation().await;
        owner.append(conversation, vec![message(1)]).await;
        for text in evil {
            let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
            for (method, path) in routes().filter(|(_, path)| path.contains('{')) {
                let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
                let places: Vec<usize> =
                    (0..parts.len()).filter(|at| parts[*at].starts_with('{')).collect();
                for at in &places {
                    parts[*at] = if path.contains("{org}") && *at == 4 {
                        owner.org.to_string()
                    } else {
                        conversation.to_string()
                    };
                }
                for at in places {
                    let kept = std::mem::replace(&mut parts[at], encoded.clone());
                    let status = owner
                        .call(method, &parts.join("/"), json!({ "level": "read", "records": [] }))
                        .await
                        .status;
                    assert!(matches!(status, 400 | 404), "{method} {path} {text}: {status}");
                    parts[at] = kept;
                }
            }
            let path = format!("context/conversations/{conversation}/messages");
            let id = json!(rid(2));
            for record in [
                json!({ "rid": text, "kind": "message", "sealed": "AAAA" }),
                json!({ "rid": id, "kind": text, "sealed": "AAAA" }),
                json!({ "rid": id, "kind": "message", "sealed": text }),
                json!({ "rid": id, "kind": "forgetting", "forgets": [text] }),
                json!({ "rid": id, "kind": "message", "sealed": "AAAA", text: 1 }),
            ] {
                let answer = owner.post(&path, json!({ "records": [record] })).await;
                assert_eq!(answer.status, 400, "{}", answer.text());
                assert!(!answer.text().contains("DROP"), "an error quotes nothing");
            }
            for (rest, body) in [
                ("invitations", json!({ "role": text })),
                (
                    "invitations",
                    json!({ "role": "member", "grants": [{ "conversation": text, "level": "read" }] }),
                ),
                ("invitations", json!({ "role": "member", "seconds": text })),
                ("tokens", json!({ "seconds": text })),
            ] {
                assert_eq!(owner.post(rest, body).await.status, 400, "{rest}");
            }
            let accept = owner
                .call("POST", "/api/v1/invitations/accept", json!({ "invitation": text }))
                .await;
            assert_eq!(accept.status, 400);
        }
        assert_eq!(owner.read(conversation).await.len(), 1);
    }
}
