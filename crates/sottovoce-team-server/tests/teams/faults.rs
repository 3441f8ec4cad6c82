//! Faults: servers that end, connections that break, a database that is killed, clocks that differ

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};
use sottovoce::ManualClock;
use sottovoce_team_server::api::Id;
use tokio::time::Instant;

use crate::harness::{
    Engine, Member, Server, Setup, engines, forgetting, given, message, postgres,
};
use crate::http::Connection;

const WRITERS: u64 = 8;

/// Where a server listens now. Readers and writers look before each request.
#[derive(Default)]
struct Place(std::sync::Mutex<Option<SocketAddr>>);

impl Place {
    fn set(&self, address: SocketAddr) {
        *self.0.lock().unwrap() = Some(address);
    }

    /// A request that is repeated until it is answered with success. Each attempt may have happened.
    async fn call(&self, method: &str, path: &str, token: &str, body: &Value) -> Value {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let began = Instant::now();
        loop {
            let address = self.0.lock().unwrap().unwrap();
            let asked = async {
                let mut connection = Connection::open(address).await.ok()?;
                connection.call(method, path, token, &body).await.ok()
            };
            if let Ok(Some(answer)) = tokio::time::timeout(Duration::from_secs(10), asked).await {
                match answer.status {
                    200..300 => return answer.json(),
                    503 => assert!(answer.header("retry-after").is_some()),
                    status => panic!("{status}: {}", answer.text()),
                }
            }
            assert!(began.elapsed() < Duration::from_secs(60), "no answer for a minute");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// What writers were told, and what a reader saw while they wrote.
struct Seen {
    acknowledged: BTreeMap<String, u64>,
    by_reader: Vec<(u64, String)>,
}

/// Writers append to one conversation while `disturb` disturbs them. A reader follows.
async fn write_while<F: Future<Output = ()>>(
    owner: &Member,
    place: Arc<Place>,
    conversation: Id,
    batches: u64,
    disturb: impl FnOnce(Arc<AtomicU64>) -> F,
) -> Seen {
    let path = owner.path(&format!("context/conversations/{conversation}"));
    let done = Arc::new(AtomicBool::new(false));
    let written = Arc::new(AtomicU64::new(0));
    let reader = {
        let (place, done, path, token) =
            (Arc::clone(&place), Arc::clone(&done), path.clone(), owner.token.clone());
        tokio::spawn(async move {
            let mut seen: Vec<(u64, String)> = Vec::new();
            loop {
                let is_last = done.load(Ordering::SeqCst);
                let path = format!("{path}/changes?after={}&wait=1", seen.len());
                let page = place.call("GET", &path, &token, &Value::Null).await;
                let records = page["records"].as_array().unwrap().clone();
                if is_last && records.is_empty() {
                    return seen;
                }
                for record in records {
                    let pos = record["pos"].as_u64().unwrap();
                    assert_eq!(pos, seen.len() as u64 + 1, "a hole, or out of order");
                    seen.push((pos, record["rid"].as_str().unwrap().to_owned()));
                }
            }
        })
    };
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (place, path, token) = (Arc::clone(&place), path.clone(), owner.token.clone());
        let written = Arc::clone(&written);
        writers.spawn(async move {
            let mut acknowledged = BTreeMap::new();
            for batch in 0..batches {
                // Each batch shares a record with that of the next writer.
                let own = (0..5).map(|n| 1_000_000 * (writer + 1) + 10 * batch + n);
                let records: Vec<Value> = own.chain([batch]).map(message).collect();
                let body = json!({ "records": records });
                let answer = place.call("POST", &format!("{path}/messages"), &token, &body).await;
                for (record, pos) in records.iter().zip(answer["positions"].as_array().unwrap()) {
                    let rid = record["rid"].as_str().unwrap().to_owned();
                    let pos = pos.as_u64().unwrap();
                    assert_eq!(*acknowledged.entry(rid).or_insert(pos), pos);
                }
                written.fetch_add(1, Ordering::SeqCst);
            }
            acknowledged
        });
    }
    disturb(written).await;
    let mut acknowledged = BTreeMap::new();
    for of_writer in writers.join_all().await {
        for (rid, pos) in of_writer {
            assert_eq!(*acknowledged.entry(rid).or_insert(pos), pos, "one record, two positions");
        }
    }
    done.store(true, Ordering::SeqCst);
    Seen { acknowledged, by_reader: reader.await.unwrap() }
}

fn check(seen: &Seen, batches: u64) {
    let expected = (WRITERS * batches * 5 + batches) as usize;
    assert_eq!(seen.acknowledged.len(), expected);
    let read: BTreeMap<String, u64> =
        seen.by_reader.iter().map(|(pos, rid)| (rid.clone(), *pos)).collect();
    assert_eq!(read.len(), seen.by_reader.len(), "something is there twice");
    assert_eq!(read, seen.acknowledged, "something was lost, or was never acknowledged");
    let positions: BTreeSet<u64> = read.values().copied().collect();
    assert_eq!(positions, (1..=expected as u64).collect());
}

/// Ends a server at once, with its requests in the middle.
fn kill(server: &Server) {
    server.task.abort();
    // Requests in progress are tasks of their own, which end with their connections.
    server.stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_servers_end() {
    for engine in engines().await {
        let setup = Setup::new(engine);
        let (mut server, owner) = setup.start_with_owner().await;
        let conversation = owner.conversation().await;
        let place = Arc::new(Place::default());
        place.set(server.address);
        let seen =
            write_while(&owner, Arc::clone(&place), conversation, 40, |written| async move {
                for round in 1..6 {
                    while written.load(Ordering::SeqCst) < round * 40 {
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                    let next = setup.start().await;
                    kill(&server);
                    place.set(next.address);
                    server = next;
                }
            })
            .await;
        check(&seen, 40);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_connections_of_the_database_break() {
    let Some(engine) = postgres().await else { return };
    let setup = Setup::new(engine.clone());
    let (server, owner) = setup.start_with_owner().await;
    let second = setup.start().await;
    let conversation = owner.conversation().await;
    let place = Arc::new(Place::default());
    place.set(server.address);
    let killed = Arc::new(AtomicU64::new(0));
    let seen = {
        let killed = Arc::clone(&killed);
        write_while(&owner, Arc::clone(&place), conversation, 30, |written| async move {
            let client = engine.client().await;
            let mut rounds = 0;
            while written.load(Ordering::SeqCst) < WRITERS * 25 {
                let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                            WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'sottovoce'";
                let count: i64 = client.query_one(kill, &[]).await.unwrap().get(0);
                killed.fetch_add(count as u64, Ordering::SeqCst);
                rounds += 1;
                place.set(if rounds % 2 == 0 { server.address } else { second.address });
                tokio::time::sleep(Duration::from_millis(150)).await;
            }
        })
        .await
    };
    check(&seen, 30);
    assert!(killed.load(Ordering::SeqCst) > 10, "connections were killed");
}

/// Runs a command of `.ci/teams`: with `kill` it kills something at once, with `start` it starts it again. Returns what it prints.
pub(crate) async fn run(control: &str, verb: &str) -> String {
    let done = tokio::process::Command::new(control).arg(verb).output().await.unwrap();
    assert!(done.status.success(), "{verb}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_the_database_is_killed() {
    // It is a database of its own, which no other test uses.
    let killed = given("SOTTOVOCE_POSTGRES_KILLED", "no database has been killed");
    let Some((url, control)) = killed.zip(std::env::var("SOTTOVOCE_POSTGRES_CONTROL").ok()) else {
        return;
    };
    let engine = Engine::postgres(url);
    let setup = Setup::new(engine);
    let (server, owner) = setup.start_with_owner().await;
    let conversation = owner.conversation().await;
    let place = Arc::new(Place::default());
    place.set(server.address);
    let seen = write_while(&owner, place, conversation, 60, |written| async move {
        for round in 1..4 {
            while written.load(Ordering::SeqCst) < round * 100 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            run(&control, "kill").await;
            run(&control, "start").await;
        }
    })
    .await;
    check(&seen, 60);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgetting_that_meets_its_record_on_the_way_wins() {
    for engine in engines().await {
        let setup = Setup::new(engine);
        let (_server, owner) = setup.start_with_owner().await;
        let other = owner.at(&setup.start().await);
        let conversation = owner.conversation().await;
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..40 {
            let (owner, other) = (owner.clone(), other.clone());
            tasks.spawn(async move {
                tokio::join!(
                    owner.append(conversation, vec![message(n), message(1000 + n)]),
                    other.append(conversation, vec![forgetting(2000 + n, &[n])]),
                );
            });
        }
        tasks.join_all().await;
        let records = owner.read(conversation).await;
        assert_eq!(records.len(), 120);
        let there = records.iter().filter(|record| record.get("sealed").is_some()).count();
        assert_eq!(there, 40, "those that nobody forgot");
        let bytes: usize = (1000..1040).map(|n| format!("sealed {n}").len()).sum();
        assert_eq!(owner.get("").await.json()["bytes"], bytes);
    }
}

#[tokio::test]
async fn servers_whose_clocks_differ_agree_on_the_order() {
    for engine in engines().await {
        let setup = Setup::new(engine);
        let (_server, owner) = setup.start_with_owner().await;
        let clocks = ["1970-01-01T00:00:00Z", "2026-11-24T12:00:01Z", "2026-12-01T00:00:00Z"];
        let mut members = Vec::new();
        let mut servers = Vec::new();
        for now in clocks {
            let clock = Arc::new(ManualClock::at_utc(now.parse().unwrap()));
            let server = setup.start_with(clock).await;
            members.push(owner.at(&server));
            servers.push(server);
        }
        let conversation = owner.conversation().await;
        for n in 0..30 {
            members[n % 3].append(conversation, vec![message(n as u64)]).await;
        }
        let records = members[0].read(conversation).await;
        for (n, record) in (0..30).zip(&records) {
            assert_eq!((&record["pos"], &record["rid"]), (&json!(n + 1), &message(n)["rid"]));
        }
        assert_eq!(members[1].read(conversation).await, records);
        // An artifact that one server writes is not swept by one whose clock is ahead.
        let path =
            format!("context/conversations/{conversation}/artifacts/{}", Id::random().unwrap());
        let (put, upkeep) =
            tokio::join!(members[0].put(&path, json!("sealed")), servers[2].team.upkeep());
        upkeep.unwrap();
        match put.status {
            204 => {}
            // The sweep came in between. Nothing was acknowledged, and the next attempt is a new object.
            503 => assert_eq!(owner.put(&path, json!("sealed")).await.status, 204),
            status => panic!("{status}"),
        }
        servers[2].team.upkeep().await.unwrap();
        assert_eq!(owner.get(&path).await.text(), "\"sealed\"");
        setup.clock.advance(SignedDuration::from_hours(1));
        assert_eq!(owner.get("").await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_pool_asks_clients_to_come_back() {
    let Some(engine) = postgres().await else { return };
    let setup = Setup::new(engine.clone());
    let (_server, owner) = setup.start_with_owner().await;
    let conversation = owner.conversation().await;
    // Somebody holds the conversation's row, and all connections wait for it.
    let mut client = engine.client().await;
    let held = client.transaction().await.unwrap();
    held.batch_execute("SELECT last FROM conversation FOR UPDATE").await.unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    for n in 0..40 {
        let owner = owner.clone();
        waiting.spawn(async move {
            let path = format!("context/conversations/{conversation}/messages");
            let answer = owner.post(&path, json!({ "records": [message(n)] })).await;
            (answer.status, answer.header("retry-after").is_some())
        });
    }
    // While the row is held, only refusals can come.
    let mut answers = vec![waiting.join_next().await.unwrap().unwrap()];
    assert_eq!(answers, [(503, true)]);
    held.rollback().await.unwrap();
    answers.extend(waiting.join_all().await);
    let refused = answers.iter().filter(|answer| **answer == (503, true)).count();
    let done = answers.iter().filter(|(status, _)| *status == 200).count();
    assert_eq!((refused + done, done > 0, refused > 0), (40, true, true), "{answers:?}");
    assert_eq!(owner.read(conversation).await.len(), done);
}

#[tokio::test]
async fn a_request_that_is_cut_anywhere_can_be_repeated() {
    for engine in engines().await {
        let (server, owner) = Setup::new(engine).start_with_owner().await;
        let conversation = owner.conversation().await;
        let path = owner.path(&format!("context/conversations/{conversation}/messages"));
        let mut expected = 0;
        for n in 0..40 {
            let records: Vec<Value> = (0..3).map(|k| message(10 * n + k)).collect();
            let body = json!({ "records": records }).to_string();
            let request = format!(
                "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{body}",
                owner.token,
                body.len()
            );
            // The last ones are cut in the answer.
            let end = (request.len() * (n as usize + 1) / 36).min(request.len());
            let mut connection = Connection::open(server.address).await.unwrap();
            connection.send(&request.as_bytes()[..end]).await.unwrap();
            if n % 2 == 0 {
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
            drop(connection);
            let before = owner.read(conversation).await.len();
            assert!(
                before == expected || (before == expected + 3 && end == request.len()),
                "{n}: {before}"
            );
            let positions = owner.append(conversation, records).await;
            assert_eq!(positions, (expected as u64 + 1..=expected as u64 + 3).collect::<Vec<_>>());
            expected += 3;
        }
        assert_eq!(owner.read(conversation).await.len(), expected);
    }
}
