//! An object store that is killed while it is written to, and comes back with what it had acknowledged

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::Value;
use sottovoce_team_server::api::Id;
use tokio::time::{Instant, sleep};

use crate::faults::run;
use crate::harness::{
    Member, Server, Setup, engines, forgetting, given, message, objects, open_bucket,
};
use crate::http::Connection;

/// Writers of artifacts, and how often the object store is killed.
const WRITERS: u64 = 4;
const KILLS: u64 = 4;

/// A piece, large enough that some upload is always in the middle.
fn piece(writer: u64, n: u64) -> Vec<u8> {
    let seed = 1 + writer * 1_000_000 + n;
    (0..(1_u64 << 20) / 8).flat_map(|at| (seed * (at + 1)).to_be_bytes()).collect()
}

/// Uploads pieces until `stop`, each of them until it is acknowledged. Returns what was.
async fn upload(
    owner: Member,
    folder: String,
    writer: u64,
    uploaded: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) -> Vec<(String, u64, u64)> {
    let mut acknowledged = Vec::new();
    for n in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let path = format!("{folder}/{}", Id::random().unwrap());
        let (bytes, began) = (piece(writer, n), Instant::now());
        loop {
            let mut connection = Connection::open(owner.address).await.unwrap();
            let answer = connection.call("PUT", &path, &owner.token, &bytes).await.unwrap();
            match answer.status {
                204 => break,
                503 => assert!(answer.header("retry-after").is_some()),
                status => panic!("{status}: {}", answer.text()),
            }
            assert!(began.elapsed() < Duration::from_secs(120), "no answer for two minutes");
        }
        acknowledged.push((path, writer, n));
        uploaded.fetch_add(1, Ordering::SeqCst);
    }
    acknowledged
}

/// Appends, forgets and packs until `stop`. Returns the records, and how many were packed.
async fn pack(
    setup: &Setup,
    server: &Server,
    owner: &Member,
    conversation: Id,
    stop: &AtomicBool,
) -> (Vec<Value>, u64) {
    let (mut expected, mut packed) = (Vec::new(), 0);
    for round in 0_u64.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let first = round * 1_000;
        let mut records: Vec<Value> = (first..first + 150).map(message).collect();
        if round > 0 {
            records.push(forgetting(first + 900, &[first - 1_000]));
        }
        owner.append(conversation, records.clone()).await;
        expected.extend(records);
        setup.clock.advance(SignedDuration::from_millis(10));
        // What fails is repeated by a later one.
        if let Ok(report) = server.team.upkeep().await {
            packed += report.packed;
        }
    }
    (expected, packed)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_when_the_object_store_is_killed() {
    let killed = given("SOTTOVOCE_BUCKET_KILLED", "no object store has been killed");
    let Some((bucket, control)) = killed.zip(std::env::var("SOTTOVOCE_BUCKET_CONTROL").ok()) else {
        return;
    };
    // PostgreSQL, if it is given.
    let engine = engines().await.pop().unwrap();
    let mut setup = Setup { objects: open_bucket(&bucket), ..Setup::new(engine) };
    setup.quotas.pack_after_days = 0;
    let (server, owner) = setup.start_with_owner().await;
    let conversation = owner.conversation().await;
    let folder = owner.path(&format!("context/conversations/{conversation}/artifacts"));
    let (uploaded, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let (uploaded, stop) = (Arc::clone(&uploaded), Arc::clone(&stop));
        writers.spawn(upload(owner.clone(), folder.clone(), writer, uploaded, stop));
    }
    let killing = async {
        let mut interrupted = 0;
        for round in 1..=KILLS {
            while uploaded.load(Ordering::SeqCst) < round * 8 {
                sleep(Duration::from_millis(1)).await;
            }
            interrupted += run(&control, "kill").await.trim().parse::<u64>().unwrap();
            // Once it stays away for longer than requests to it are repeated.
            if round == 2 {
                sleep(Duration::from_secs(12)).await;
            }
            run(&control, "start").await;
        }
        stop.store(true, Ordering::SeqCst);
        interrupted
    };
    let packing = pack(&setup, &server, &owner, conversation, &stop);
    let (interrupted, (expected, packed)) = tokio::join!(killing, packing);
    assert!(interrupted >= KILLS, "changes that a kill met: {interrupted}");
    let acknowledged = writers.join_all().await;

    // What a kill left undone is done later.
    setup.clock.advance(SignedDuration::from_hours(2));
    server.team.upkeep().await.unwrap();
    server.team.upkeep().await.unwrap();
    let mut pieces = 0;
    for (path, writer, n) in acknowledged.into_iter().flatten() {
        let answer = owner.call_bytes("GET", &path, b"").await;
        assert!(answer.status == 200 && answer.body == piece(writer, n), "{path}");
        pieces += 1;
    }
    let records = owner.read(conversation).await;
    assert_eq!(records.len(), expected.len());
    let last = records.len() / 151;
    for (record, appended) in records.iter().zip(&expected) {
        assert_eq!(record["rid"], appended["rid"]);
        let rid = record["rid"].as_str().unwrap();
        let n = u64::from_str_radix(&rid[48..], 16).unwrap();
        let is_forgotten = n % 1_000 == 0 && n / 1_000 < last as u64;
        let sealed = if is_forgotten { &Value::Null } else { &appended["sealed"] };
        assert_eq!(&record["sealed"], sealed, "{n}");
    }
    assert!(packed > 0);
    // Each object is an artifact or a pack: nothing is left behind, and nothing that was forgotten.
    let objects: BTreeMap<_, _> = objects(&setup.objects).await;
    let (packs, others): (Vec<_>, Vec<_>) =
        objects.values().partition(|bytes| bytes.starts_with(b"SVPACK1\n"));
    assert_eq!(others.len(), pieces);
    for pack in packs {
        for round in 0..last as u64 {
            // The next record's position begins with a zero.
            let text = format!("sealed {}\0", round * 1_000);
            let is_there = pack.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(!is_there, "{text} is in a pack");
        }
    }
}
