//! What is asked at the same time, and what is tried again and again: how often the database and the object store are asked for it

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use jiff::SignedDuration;
use serde_json::{Value, json};
use sottovoce_remote::testing::MemoryRemote;
use sottovoce_remote::{Action, ErrorKind, Remote, RemoteError};
use sottovoce_team_server::api::Id;
use sottovoce_team_server::{
    Database, Error, Load, Outcome, Positions, RecordBatch, Result, Step, Team, listen, serve,
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::harness::{Engine, Member, Server, Setup, engines, forgetting, message, objects};

/// Parts of the statements that are counted.
const RECORDS: &str = "FROM record WHERE conversation";
const MARKS: &str = "UNION ALL";
const HEALTH: &str = "SELECT id FROM org LIMIT 1";

/// A database that counts what it is asked, and holds it up.
#[derive(Debug)]
struct Counted {
    inner: Arc<dyn Database>,
    asked: Mutex<Vec<&'static str>>,
    /// Lets statements that read records end. Each takes one place.
    gate: Semaphore,
    is_gone: AtomicBool,
}

#[async_trait::async_trait]
impl Database for Counted {
    async fn transact(&self, steps: Vec<Step>) -> Result<Outcome> {
        let sql = steps[0].sql;
        self.asked.lock().unwrap().push(sql);
        if self.is_gone.load(Ordering::SeqCst) {
            return Err(Error::Unavailable);
        }
        let done = self.inner.transact(steps).await;
        if sql.contains(RECORDS) {
            self.gate.acquire().await.unwrap().forget();
        }
        done
    }

    async fn append(&self, batch: &RecordBatch, steps: &[Step]) -> Result<Option<Positions>> {
        self.inner.append(batch, steps).await
    }

    fn load(&self) -> Load {
        self.inner.load()
    }
}

impl Counted {
    fn count(&self, part: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|sql| sql.contains(part)).count()
    }

    async fn is_asked(&self, part: &str, times: usize) {
        while self.count(part) < times {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn start(setup: &Setup) -> (Server, Member, Arc<Counted>) {
    let database = Arc::new(Counted {
        inner: setup.engine.open().await,
        asked: Mutex::default(),
        gate: Semaphore::new(0),
        is_gone: AtomicBool::new(false),
    });
    let team = Team::new(Arc::clone(&database) as _, Arc::clone(&setup.objects))
        .clock(Arc::clone(&setup.clock) as _);
    let listening = listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let (address, stop) = (listening.address(), CancellationToken::new());
    let serving = serve(listening, team.clone(), None, setup.limits, stop.clone());
    let server = Server { address, team, stop, task: tokio::spawn(serving) };
    let owner = server.owner().await;
    (server, owner, database)
}

/// Members who wait for the first record of a conversation.
async fn waiting(
    server: &Server,
    members: &[Member],
    conversation: Id,
    database: &Counted,
) -> Vec<tokio::task::JoinHandle<(u16, Value)>> {
    let lookups = database.count("FROM EACH");
    let path = format!("context/conversations/{conversation}/changes?after=0&wait=30");
    let wait = |member: &Member| {
        let (member, path) = (member.at(server), path.clone());
        tokio::spawn(async move {
            let answer = member.get(&path).await;
            (answer.status, answer.json())
        })
    };
    let waiting = members.iter().map(wait).collect();
    // Lookups share statements: when none comes any more, all wait.
    database.is_asked("FROM EACH", lookups + 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    waiting
}

async fn team_of(owner: &Member, conversation: Id, count: usize) -> Vec<Member> {
    let mut members = Vec::new();
    for _ in 0..count {
        let grant = json!([{ "conversation": conversation, "level": "read" }]);
        members.push(owner.invite("member", grant).await);
    }
    members
}

#[tokio::test]
async fn all_who_wait_for_a_conversation_share_one_statement() {
    for engine in engines().await {
        let setup = Setup::new(engine);
        let (server, owner, database) = start(&setup).await;
        let conversation = owner.conversation().await;
        let members = team_of(&owner, conversation, 30).await;
        let waiting = waiting(&server, &members, conversation, &database).await;
        owner.append(conversation, vec![message(1), message(2)]).await;
        database.is_asked(RECORDS, 1).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        database.gate.add_permits(100);
        for answer in waiting {
            let (status, page) = answer.await.unwrap();
            assert_eq!((status, &page["last"]), (200, &json!(2)));
            assert_eq!(page["records"].as_array().unwrap().len(), 2);
        }
        assert_eq!(database.count(RECORDS), 1);
    }
}

#[tokio::test]
async fn a_right_that_ends_while_others_read_shows_nothing_and_takes_nothing_from_them() {
    for engine in engines().await {
        let setup = Setup::new(engine);
        let (server, owner, database) = start(&setup).await;
        for n in 0..3 {
            let conversation = owner.conversation().await;
            let members = team_of(&owner, conversation, 3).await;
            let before = database.count(RECORDS);
            let waiting = waiting(&server, &members, conversation, &database).await;
            owner.append(conversation, vec![message(1)]).await;
            database.is_asked(RECORDS, before + 1).await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            // One of them asks the database for all, and which one is not known.
            let out = &members[n];
            assert_eq!(owner.delete(&format!("members/{}", out.id)).await.status, 204);
            database.gate.add_permits(100);
            let mut statuses = Vec::new();
            for answer in waiting {
                statuses.push(answer.await.unwrap().0);
            }
            // Whose statement it is had the right when it was run.
            let shown = statuses.iter().filter(|status| **status == 200).count();
            assert!(shown == 2 || shown == 3, "{statuses:?}");
            assert!(statuses[(n + 1) % 3] == 200 && statuses[(n + 2) % 3] == 200, "{statuses:?}");
            assert_eq!(out.get("").await.status, 401);
        }
    }
}

#[tokio::test]
async fn looking_for_what_other_servers_append_takes_one_statement_for_all() {
    for engine in engines().await {
        let mut setup = Setup::new(engine);
        setup.limits.look = Duration::from_millis(100);
        let (server, owner, database) = start(&setup).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(database.count(MARKS), 0, "nobody waits");
        let mut members = Vec::new();
        let mut answers = Vec::new();
        for _ in 0..4 {
            let conversation = owner.conversation().await;
            members.push((conversation, team_of(&owner, conversation, 3).await));
        }
        for (conversation, members) in &members {
            answers.extend(waiting(&server, members, *conversation, &database).await);
        }
        let before = database.count(MARKS);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let asked = database.count(MARKS) - before;
        assert!((1..=10).contains(&asked), "{asked}");
        server.stop.cancel();
        for answer in answers {
            assert_eq!(answer.await.unwrap().0, 200);
        }
    }
}

#[tokio::test]
async fn health_asks_the_database_once_a_second_and_tells_when_it_fails() {
    let setup = Setup::new(engines().await.remove(0));
    let (server, owner, database) = start(&setup).await;
    let ask = async |times: usize| {
        let asked = (0..times).map(|_| owner.call("GET", "/health", Value::Null));
        let mut statuses: Vec<u16> = Vec::new();
        for asked in asked.collect::<Vec<_>>() {
            statuses.push(asked.await.status);
        }
        statuses
    };
    assert_eq!(ask(20).await, [200; 20]);
    assert!(database.count(HEALTH) <= 2, "{}", database.count(HEALTH));
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    database.is_gone.store(true, Ordering::SeqCst);
    let before = database.count(HEALTH);
    assert_eq!(ask(20).await, [503; 20]);
    assert!(database.count(HEALTH) - before <= 2);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    database.is_gone.store(false, Ordering::SeqCst);
    assert_eq!(ask(1).await, [200]);
    drop(server);
}

/// Objects of which one cannot be deleted.
#[derive(Debug, Default)]
struct Stubborn {
    inner: MemoryRemote,
    bad: Mutex<Option<String>>,
    puts: AtomicUsize,
}

#[async_trait::async_trait]
impl Remote for Stubborn {
    async fn put(&self, name: &str, bytes: Bytes) -> sottovoce_remote::Result<()> {
        self.puts.fetch_add(1, Ordering::SeqCst);
        // Time for another one that does the same.
        tokio::time::sleep(Duration::from_millis(30)).await;
        self.inner.put(name, bytes).await
    }

    async fn get(&self, name: &str) -> sottovoce_remote::Result<Option<Bytes>> {
        self.inner.get(name).await
    }

    async fn list(&self, folder: &str) -> sottovoce_remote::Result<Vec<String>> {
        self.inner.list(folder).await
    }

    async fn delete(&self, name: &str) -> sottovoce_remote::Result<()> {
        if self.bad.lock().unwrap().as_deref() == Some(name) {
            return Err(RemoteError::new(ErrorKind::Refused, Action::Delete, name, "it is locked"));
        }
        self.inner.delete(name).await
    }
}

async fn with_objects(engine: Engine) -> (Setup, Server, Member, Arc<Stubborn>) {
    let remote = Arc::new(Stubborn::default());
    let setup = Setup { objects: Arc::clone(&remote) as _, ..Setup::new(engine) };
    let (server, owner) = setup.start_with_owner().await;
    (setup, server, owner, remote)
}

#[tokio::test]
async fn an_object_that_cannot_be_deleted_keeps_no_other_one() {
    for engine in engines().await {
        let (setup, server, owner, remote) = with_objects(engine).await;
        let conversation = owner.conversation().await;
        for n in 0..5 {
            let path =
                format!("context/conversations/{conversation}/artifacts/{}", Id::random().unwrap());
            assert_eq!(owner.put(&path, json!(n)).await.status, 204);
        }
        let names: Vec<String> = objects(&*remote).await.into_keys().collect();
        *remote.bad.lock().unwrap() = Some(names[0].clone());
        let deleted = owner.delete(&format!("context/conversations/{conversation}")).await;
        assert_eq!(deleted.status, 204);
        assert_eq!(objects(&*remote).await.into_keys().collect::<Vec<_>>(), names[..1]);
        assert!(server.team.upkeep().await.is_err(), "the operator is told");
        *remote.bad.lock().unwrap() = None;
        setup.clock.advance(SignedDuration::from_hours(1));
        assert_eq!(server.team.upkeep().await.unwrap().swept, 1);
        assert!(objects(&*remote).await.is_empty());
    }
}

#[tokio::test]
async fn a_pack_is_rewritten_once_however_many_notice_that_it_must_be() {
    for engine in engines().await {
        let (setup, server, owner, remote) = with_objects(engine).await;
        let conversation = owner.conversation().await;
        owner.append(conversation, (0..300).map(message).collect()).await;
        setup.clock.advance(SignedDuration::from_hours(24 * 31));
        assert_eq!(server.team.upkeep().await.unwrap().packed, 300);
        let before = remote.puts.load(Ordering::SeqCst);
        owner.append(conversation, vec![forgetting(900, &[7])]).await;
        let (one, two) = tokio::join!(server.team.upkeep(), server.team.upkeep());
        let rewritten = one.unwrap().rewritten + two.unwrap().rewritten;
        assert!(rewritten <= 1, "{rewritten}");
        assert_eq!(remote.puts.load(Ordering::SeqCst) - before, 1);
        assert_eq!(owner.read(conversation).await[7]["sealed"], Value::Null);
    }
}
