//! Databases, servers and members for the tests

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use sottovoce::{Clock, ManualClock};
use sottovoce_remote::testing::MemoryRemote;
use sottovoce_remote::{Credentials, Remote};
use sottovoce_team_server::api::{Hex, Id, NewMember, Rid, Secret};
use sottovoce_team_server::{
    Database, DatabaseOptions, Limits, Listening, Quotas, Rate, Team, listen, open_database, serve,
};
use tokio_util::sync::CancellationToken;

use crate::http::{Answer, Connection};

/// The variable that names a PostgreSQL server.
pub(crate) const POSTGRES: &str = "SOTTOVOCE_POSTGRES";

/// A database of its own for one test.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    pub(crate) address: String,
    pub(crate) is_postgres: bool,
    /// Of the SQLite file. It is deleted with the last copy of this.
    _folder: Arc<tempfile::TempDir>,
}

/// The value of a variable that `.ci/teams` sets. Without it, says what that leaves untried.
pub(crate) fn given(variable: &str, untried: &str) -> Option<String> {
    use std::io::Write;
    let value = std::env::var(variable).ok();
    if value.is_none() {
        // The test harness keeps what a test prints if it passes, but not this.
        let text = format!("SKIPPED: {variable} is not set; {untried}. `.ci/teams` sets it\n");
        std::io::stderr().write_all(text.as_bytes()).unwrap();
    }
    value
}

/// A SQLite file, and a database of PostgreSQL if a server is given.
pub(crate) async fn engines() -> Vec<Engine> {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let address = folder.path().join("teams.sqlite").to_str().unwrap().to_owned();
    let mut engines = vec![Engine { address, is_postgres: false, _folder: folder }];
    engines.extend(postgres().await);
    engines
}

/// A database of PostgreSQL, if a server is given.
pub(crate) async fn postgres() -> Option<Engine> {
    let url = given(POSTGRES, "nothing has been tried on PostgreSQL")?;
    let name = format!("test_{}", Id::random().unwrap());
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let (server, _) = url.rsplit_once('/').unwrap();
    Some(Engine::postgres(format!("{server}/{name}")))
}

/// Databases with objects in memory, and with objects in a bucket of S3 if one is given.
pub(crate) async fn stores() -> Vec<(Engine, Arc<dyn Remote>)> {
    let mut stores: Vec<(Engine, Arc<dyn Remote>)> = Vec::new();
    for engine in engines().await {
        stores.push((engine, Arc::new(MemoryRemote::default())));
    }
    if let Some(bucket) = given("SOTTOVOCE_BUCKET", "no bucket has been tried") {
        for engine in engines().await {
            stores.push((engine, open_bucket(&bucket)));
        }
    }
    stores
}

/// A folder of its own in a bucket, which is given as its address and a file of credentials.
pub(crate) fn open_bucket(bucket: &str) -> Arc<dyn Remote> {
    let (address, credentials) = bucket.split_once(' ').unwrap();
    let address = format!("{address}/{}", Id::random().unwrap());
    let credentials = Credentials::from_file(credentials.as_ref()).unwrap();
    sottovoce_remote::open(&address, &credentials).unwrap()
}

/// All objects of a server.
pub(crate) async fn objects(remote: &dyn Remote) -> BTreeMap<String, Bytes> {
    let mut objects = BTreeMap::new();
    for folder in remote.list("teams").await.unwrap() {
        for name in remote.list(&format!("teams/{}", folder.trim_end_matches('/'))).await.unwrap() {
            let name = format!("teams/{folder}{name}");
            // It may be deleted meanwhile.
            if let Some(bytes) = remote.get(&name).await.unwrap() {
                objects.insert(name, bytes);
            }
        }
    }
    objects
}

impl Engine {
    /// The database of PostgreSQL at this address.
    pub(crate) fn postgres(address: String) -> Self {
        Self { address, is_postgres: true, _folder: Arc::new(tempfile::tempdir().unwrap()) }
    }

    pub(crate) async fn open(&self) -> Arc<dyn Database> {
        open_database(&self.address, DatabaseOptions::default()).await.unwrap()
    }

    /// A connection to PostgreSQL beside the server's.
    pub(crate) async fn client(&self) -> tokio_postgres::Client {
        let (client, connection) =
            tokio_postgres::connect(&self.address, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// The SQLite file.
    pub(crate) fn file(&self) -> PathBuf {
        self.address.clone().into()
    }
}

/// Limits that tests do not meet by accident.
pub(crate) fn wide() -> Limits {
    let rate = Rate { per_second: 1e9, burst: 1e12 };
    let mut limits = Limits::default();
    limits.member_requests = rate;
    limits.member_bytes = rate;
    limits.org_requests = rate;
    limits.strangers = rate;
    limits.look = Duration::from_millis(50);
    limits
}

/// What a server of a test is made of.
pub(crate) struct Setup {
    pub(crate) engine: Engine,
    pub(crate) objects: Arc<dyn Remote>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) quotas: Quotas,
    pub(crate) limits: Limits,
    pub(crate) operator: Secret,
}

/// A running server.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) team: Team,
    pub(crate) stop: CancellationToken,
    pub(crate) task: tokio::task::JoinHandle<()>,
}

impl Setup {
    pub(crate) fn new(engine: Engine) -> Self {
        Self {
            engine,
            objects: Arc::new(MemoryRemote::default()),
            clock: Arc::new(ManualClock::at_utc("2026-11-24T12:00:00Z".parse().unwrap())),
            quotas: Quotas::default(),
            limits: wide(),
            operator: Secret::random().unwrap(),
        }
    }

    /// Starts a server. Several may run at the same time.
    pub(crate) async fn start(&self) -> Server {
        self.start_with(Arc::clone(&self.clock) as Arc<dyn Clock>).await
    }

    pub(crate) async fn start_with(&self, clock: Arc<dyn Clock>) -> Server {
        self.start_at(listen(([127, 0, 0, 1], 0).into()).await.unwrap(), clock).await
    }

    pub(crate) async fn start_at(&self, listening: Listening, clock: Arc<dyn Clock>) -> Server {
        let team = Team::new(self.engine.open().await, Arc::clone(&self.objects))
            .clock(clock)
            .quotas(self.quotas);
        let (address, stop) = (listening.address(), CancellationToken::new());
        let serving =
            serve(listening, team.clone(), Some(self.operator.clone()), self.limits, stop.clone());
        Server { address, team, stop, task: tokio::spawn(serving) }
    }

    /// A server, and the owner of a new organisation.
    pub(crate) async fn start_with_owner(&self) -> (Server, Member) {
        let server = self.start().await;
        let owner = server.owner().await;
        (server, owner)
    }
}

/// A member with a token, at one server.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) address: SocketAddr,
    pub(crate) org: Id,
    pub(crate) id: Id,
    pub(crate) token: String,
}

impl Server {
    /// The owner of a new organisation.
    pub(crate) async fn owner(&self) -> Member {
        Member::new(self.address, &self.team.create_organisation(None).await.unwrap())
    }
}

impl Member {
    pub(crate) fn new(address: SocketAddr, member: &NewMember) -> Self {
        let token = member.token.token.reveal().to_string();
        Self { address, org: member.org, id: member.member, token }
    }

    /// The same member at another server.
    pub(crate) fn at(&self, server: &Server) -> Self {
        Self { address: server.address, ..self.clone() }
    }

    /// Another member of the organisation.
    pub(crate) async fn invite(&self, role: &str, grants: Value) -> Self {
        let made = self.post("invitations", json!({ "role": role, "grants": grants })).await;
        assert_eq!(made.status, 201, "{}", made.text());
        let accepted = self
            .call(
                "POST",
                "/api/v1/invitations/accept",
                json!({ "invitation": made.json()["invitation"] }),
            )
            .await;
        assert_eq!(accepted.status, 201, "{}", accepted.text());
        Self::new(self.address, &serde_json::from_slice(&accepted.body).unwrap())
    }

    /// A new conversation.
    pub(crate) async fn conversation(&self) -> Id {
        let created = self.post("context/conversations", json!({})).await;
        assert_eq!(created.status, 201, "{}", created.text());
        created.json()["id"].as_str().unwrap().parse().unwrap()
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> Answer {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.call_bytes(method, path, &body).await
    }

    pub(crate) async fn call_bytes(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        let mut connection = Connection::open(self.address).await.unwrap();
        connection.call(method, path, &self.token, body).await.unwrap()
    }

    /// A path of the member's organisation.
    pub(crate) fn path(&self, rest: &str) -> String {
        let slash = if rest.is_empty() { "" } else { "/" };
        format!("/api/v1/orgs/{}{slash}{rest}", self.org)
    }

    pub(crate) async fn get(&self, rest: &str) -> Answer {
        self.call("GET", &self.path(rest), Value::Null).await
    }

    pub(crate) async fn post(&self, rest: &str, body: Value) -> Answer {
        self.call("POST", &self.path(rest), body).await
    }

    pub(crate) async fn put(&self, rest: &str, body: Value) -> Answer {
        self.call("PUT", &self.path(rest), body).await
    }

    pub(crate) async fn patch(&self, rest: &str, body: Value) -> Answer {
        self.call("PATCH", &self.path(rest), body).await
    }

    pub(crate) async fn delete(&self, rest: &str) -> Answer {
        self.call("DELETE", &self.path(rest), Value::Null).await
    }

    /// Appends records, and returns their positions.
    #[track_caller]
    pub(crate) fn append(
        &self,
        conversation: Id,
        records: Vec<Value>,
    ) -> impl Future<Output = Vec<u64>> {
        let (member, at) = (self.clone(), std::panic::Location::caller());
        async move {
            let path = format!("context/conversations/{conversation}/messages");
            let mut appended = member.post(&path, json!({ "records": records })).await;
            // A busy server asks to come back.
            for _ in 0..20 {
                if appended.status != 503 {
                    break;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
                appended = member.post(&path, json!({ "records": records })).await;
            }
            assert_eq!(appended.status, 200, "{} at {at}", appended.text());
            serde_json::from_value(appended.json()["positions"].clone()).unwrap()
        }
    }

    /// All records of a conversation.
    pub(crate) async fn read(&self, conversation: Id) -> Vec<Value> {
        let mut records: Vec<Value> = Vec::new();
        loop {
            let after = records.last().map_or(0, |record| record["pos"].as_u64().unwrap());
            let page =
                self.get(&format!("context/conversations/{conversation}?after={after}")).await;
            assert_eq!(page.status, 200, "{}", page.text());
            match page.json()["records"].as_array().unwrap() {
                more if more.is_empty() => return records,
                more => records.extend(more.iter().cloned()),
            }
        }
    }
}

/// A record identifier.
pub(crate) fn rid(n: u64) -> Rid {
    let mut bytes = [0; 32];
    bytes[24..].copy_from_slice(&n.to_be_bytes());
    Hex::new(bytes)
}

/// A message.
pub(crate) fn message(n: u64) -> Value {
    json!({ "rid": rid(n), "kind": "message", "sealed": base64(format!("sealed {n}").as_bytes()) })
}

/// A forgetting.
pub(crate) fn forgetting(n: u64, of: &[u64]) -> Value {
    let forgets: Vec<Rid> = of.iter().map(|n| rid(*n)).collect();
    json!({ "rid": rid(n), "kind": "forgetting", "forgets": forgets })
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    serde_json::to_value(sottovoce_team_server::api::Sealed::from(bytes.to_vec()))
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned()
}
