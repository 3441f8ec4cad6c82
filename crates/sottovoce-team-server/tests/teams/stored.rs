//! Artifacts, packs and exports: what lies in the object store, and what comes back

use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::{Value, json};
use sottovoce_remote::Remote;
use sottovoce_team_server::api::Id;

use crate::harness::{Engine, Member, Server, Setup, forgetting, message, objects, stores};

async fn start(engine: Engine, remote: &Arc<dyn Remote>) -> (Setup, Server, Member) {
    let setup = Setup { objects: Arc::clone(remote), ..Setup::new(engine) };
    let (server, owner) = setup.start_with_owner().await;
    (setup, server, owner)
}

#[tokio::test]
async fn a_piece_is_stored_once_and_never_replaced() {
    for (engine, remote) in stores().await {
        let (_setup, server, owner) = start(engine, &remote).await;
        let conversation = owner.conversation().await;
        let path = owner.path(&format!(
            "context/conversations/{conversation}/artifacts/{}",
            Id::random().unwrap()
        ));
        let bytes: Vec<u8> = (0..=255).cycle().take(3 << 20).collect();
        for _ in 0..2 {
            assert_eq!(owner.call_bytes("PUT", &path, &bytes).await.status, 204);
        }
        assert_eq!(owner.call_bytes("PUT", &path, b"other").await.status, 409);
        let (one, two) = (path.replace("artifacts/", "artifacts/x"), path.clone());
        assert_eq!(owner.call_bytes("PUT", &one, b"other").await.status, 404, "no identifier");
        assert_eq!(owner.call_bytes("GET", &two, b"").await.body, bytes);
        assert_eq!(objects(&remote).await.len(), 1);
        assert_eq!(owner.get("").await.json()["bytes"], 3 << 20);
        assert_eq!(owner.call_bytes("DELETE", &path, b"").await.status, 204);
        assert_eq!(owner.call_bytes("GET", &path, b"").await.status, 404);
        assert_eq!(owner.get("").await.json()["bytes"], 0);
        assert!(objects(&remote).await.is_empty());
        assert_eq!(owner.call_bytes("PUT", &path, b"").await.status, 413);
        drop(server);
    }
}

#[tokio::test]
async fn old_records_move_into_packs_and_come_back_in_their_place() {
    for (engine, remote) in stores().await {
        let (setup, server, owner) = start(engine, &remote).await;
        let conversation = owner.conversation().await;
        for start in (0..2500).step_by(500) {
            owner.append(conversation, (start..start + 500).map(message).collect()).await;
        }
        owner.append(conversation, vec![forgetting(9000, &[10, 2000])]).await;
        setup.clock.advance(SignedDuration::from_hours(24 * 31));
        owner_token(&owner).await;
        owner.append(conversation, (3000..3500).map(message).collect()).await;
        let before = owner.read(conversation).await;
        let report = server.team.upkeep().await.unwrap();
        assert_eq!((report.packed, report.rewritten), (2498, 0), "old ones with contents");
        assert_eq!(objects(&remote).await.len(), 3);
        assert_eq!(owner.read(conversation).await, before);
        let middle = owner
            .get(&format!("context/conversations/{conversation}?after=995&limit=10"))
            .await
            .json();
        assert_eq!(middle["records"].as_array().unwrap()[..], before[995..1005]);
        // Records in packs are known, and are forgotten.
        assert_eq!(owner.append(conversation, vec![message(5)]).await, [6]);
        owner.append(conversation, vec![forgetting(9001, &[5, 6, 1500])]).await;
        let gone: Vec<Value> = owner.read(conversation).await;
        for n in [5, 6, 1500, 10, 2000] {
            assert_eq!(gone[n]["sealed"], Value::Null, "{n}");
        }
        assert_eq!(gone[7], before[7]);
        // Soon the packs do not hold them either.
        let holds = async |text: &str| {
            let packs = objects(&remote).await;
            packs.values().any(|pack| pack.windows(text.len()).any(|part| part == text.as_bytes()))
        };
        for _ in 0..100 {
            if !holds("sealed 1500").await {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert!(!holds("sealed 1500").await && holds("sealed 1501").await);
        server.team.upkeep().await.unwrap();
        assert_eq!(objects(&remote).await.len(), 3, "the packs before are deleted");
        assert_eq!(owner.read(conversation).await, gone);
        assert_eq!(
            owner.delete(&format!("context/conversations/{conversation}")).await.status,
            204
        );
        assert!(objects(&remote).await.is_empty());
        assert_eq!(owner.get(&format!("context/conversations/{conversation}")).await.status, 404);
    }
}

/// Time passes; the token does not expire within it.
async fn owner_token(owner: &Member) {
    assert_eq!(owner.get("").await.status, 200);
}

#[tokio::test]
async fn a_pack_that_is_lost_or_changed_is_told_and_not_guessed() {
    for (engine, remote) in stores().await {
        let (setup, server, owner) = start(engine, &remote).await;
        let conversation = owner.conversation().await;
        owner.append(conversation, (0..500).map(message).collect()).await;
        setup.clock.advance(SignedDuration::from_hours(24 * 31));
        server.team.upkeep().await.unwrap();
        owner.append(conversation, vec![message(600)]).await;
        let (name, pack) = objects(&remote).await.pop_first().unwrap();
        let mut changed = pack.to_vec();
        changed[100] ^= 1;
        for bad in [Some(changed), Some(pack[..pack.len() - 40].to_vec()), None] {
            match bad {
                Some(bytes) => remote.put(&name, bytes.into()).await.unwrap(),
                None => remote.delete(&name).await.unwrap(),
            }
            let answer = owner.get(&format!("context/conversations/{conversation}")).await;
            assert_eq!((answer.status, &answer.json()["code"]), (500, &json!("damaged")));
            // What is not in the pack is served.
            let later = owner.get(&format!("context/conversations/{conversation}?after=500")).await;
            assert_eq!(later.json()["records"].as_array().unwrap().len(), 1);
        }
        remote.put(&name, pack).await.unwrap();
        assert_eq!(owner.read(conversation).await.len(), 501);
    }
}

#[tokio::test]
async fn an_export_holds_all_that_a_member_may_read_and_nothing_else() {
    for (engine, remote) in stores().await {
        let (_setup, _server, owner) = start(engine, &remote).await;
        let (shown, hidden) = (owner.conversation().await, owner.conversation().await);
        for start in [0, 1000, 2000] {
            owner.append(shown, (start..start + 1000).map(message).collect()).await;
        }
        owner.append(hidden, vec![message(77777)]).await;
        owner
            .put(
                &format!("context/conversations/{shown}/artifacts/{}", Id::random().unwrap()),
                json!(1),
            )
            .await;
        let member =
            owner.invite("member", json!([{ "conversation": shown, "level": "read" }])).await;
        let export = member.get("export").await;
        assert!(export.is_whole);
        let lines: Vec<Value> =
            export.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["conversation"]["id"], json!(shown));
        let records: Vec<&Value> = lines.iter().filter_map(|line| line.get("record")).collect();
        assert_eq!(records.len(), 3000);
        assert!((1..).zip(&records).all(|(pos, record)| record["pos"] == pos));
        assert!(lines[3001].get("artifact").is_some());
        assert_eq!(lines[3002], json!({ "end": 3002 }));
        assert_eq!(lines.len(), 3003);
        assert!(!export.text().contains(&hidden.to_string()));
        let audit = owner.get("audit").await.json();
        assert_eq!(audit["entries"].as_array().unwrap().last().unwrap()["action"], "export");
    }
}

#[tokio::test]
async fn what_was_written_in_vain_is_deleted_and_nothing_else() {
    for (engine, remote) in stores().await {
        let (setup, server, owner) = start(engine, &remote).await;
        let conversation = owner.conversation().await;
        let path = format!("context/conversations/{conversation}/artifacts");
        owner.put(&format!("{path}/{}", Id::random().unwrap()), json!("kept")).await;
        // Two requests at once with one identifier: one object is in vain.
        let path = format!("{path}/{}", Id::random().unwrap());
        let (one, two) =
            tokio::join!(owner.put(&path, json!("twice")), owner.put(&path, json!("twice")));
        assert_eq!((one.status, two.status), (204, 204));
        let (one, two) = tokio::join!(server.team.upkeep(), server.team.upkeep());
        one.unwrap();
        two.unwrap();
        assert!(objects(&remote).await.len() >= 2, "it might still be in use");
        setup.clock.advance(SignedDuration::from_hours(2));
        server.team.upkeep().await.unwrap();
        assert_eq!(objects(&remote).await.len(), 2);
        assert_eq!(owner.get(&path).await.text(), "\"twice\"");
    }
}

#[tokio::test]
async fn one_of_several_servers_does_the_upkeep_and_another_one_the_next() {
    for (engine, remote) in stores().await {
        let (setup, one, _owner) = start(engine, &remote).await;
        let two = setup.start().await;
        let hour = std::time::Duration::from_secs(3_600);
        assert!(one.team.takes_upkeep(hour).await.unwrap());
        assert!(!two.team.takes_upkeep(hour).await.unwrap());
        setup.clock.advance(SignedDuration::from_mins(55));
        assert!(two.team.takes_upkeep(hour).await.unwrap());
        assert!(!one.team.takes_upkeep(hour).await.unwrap());
        // A clock that was wrong and is set back stops nothing.
        setup.clock.advance(SignedDuration::from_hours(-100));
        assert!(one.team.takes_upkeep(hour).await.unwrap());
    }
}
