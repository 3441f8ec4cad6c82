//! A server, a proxy before it, and members

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use sottovoce::store::Profile;
use sottovoce::{
    ChatMessage, ChatRole, Clock, ConversationStore, FileConversationStore, ManualClock, Scope,
};
use sottovoce_remote::testing::MemoryRemote;
use sottovoce_sync::{Conversations, Problem, SyncReport};
use sottovoce_team::{Level, Link, Role, TeamResult, Teams};
use sottovoce_team_server::api::Secret;
use sottovoce_team_server::{DatabaseOptions, Limits, Rate, Team, listen, open_database, serve};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::home::{Home, copy};
use crate::proxy::Proxy;

/// The variable that names a PostgreSQL server.
const POSTGRES: &str = "SOTTOVOCE_POSTGRES";

pub(crate) const PLANS: &str = "named/plans";

/// A server and its proxy.
pub(crate) struct House {
    pub(crate) folder: TempDir,
    pub(crate) objects: Arc<MemoryRemote>,
    pub(crate) proxy: Proxy,
    pub(crate) clock: Arc<ManualClock>,
    operator: Secret,
    /// The database, what the names of all begin with, and how often the server was put back.
    database: String,
    databases: String,
    lives: u32,
    stop: CancellationToken,
}

/// A member with a store of its own.
pub(crate) struct Person {
    pub(crate) name: String,
    pub(crate) home: Arc<Home>,
    pub(crate) teams: Teams,
    pub(crate) died: Arc<tokio::sync::Notify>,
    saved: PathBuf,
}

/// Limits that tests do not meet by accident.
pub(crate) fn wide() -> Limits {
    let rate = Rate { per_second: 1e9, burst: 1e12 };
    let mut limits = Limits::default();
    limits.member_requests = rate;
    limits.member_bytes = rate;
    limits.org_requests = rate;
    limits.strangers = rate;
    limits
}

impl House {
    /// A server on a SQLite file, or on the PostgreSQL server that is given.
    pub(crate) async fn new() -> Self {
        Self::at("2026-11-24T12:00:00Z".parse().unwrap()).await
    }

    /// One whose clock begins at this time.
    pub(crate) async fn at(now: Timestamp) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = match std::env::var(POSTGRES) {
            Ok(url) => postgres(&url).await,
            Err(_) => folder.path().join("teams.sqlite").to_str().unwrap().to_owned(),
        };
        let objects = Arc::new(MemoryRemote::default());
        let clock = Arc::new(ManualClock::at_utc(now));
        let (operator, stop) = (Secret::random().unwrap(), CancellationToken::new());
        let proxy = Proxy::before(([127, 0, 0, 1], 0).into()).await;
        let house = Self {
            folder,
            objects,
            proxy,
            clock,
            operator,
            databases: database.clone(),
            database,
            lives: 0,
            stop,
        };
        house.proxy.turn_to(house.serve(&house.database).await);
        house
    }

    /// Starts one more server on a database.
    async fn serve(&self, database: &str) -> SocketAddr {
        let database = open_database(database, DatabaseOptions::default()).await.unwrap();
        let objects = Arc::clone(&self.objects) as _;
        let team = Team::new(database, objects).clock(Arc::clone(&self.clock) as _);
        let listening = listen(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = listening.address();
        let token = Some(self.operator.clone());
        tokio::spawn(serve(listening, team, token, wide(), self.stop.clone()));
        address
    }

    /// Has the next requests answered by another server on the same database.
    pub(crate) async fn another_server(&self) {
        self.proxy.turn_to(self.serve(&self.database).await);
    }

    /// Has every second request answered by one more server on the same database.
    pub(crate) async fn one_more_server(&self) {
        self.proxy.turn_also_to(self.serve(&self.database).await);
    }

    /// Keeps a copy of the server's database.
    pub(crate) async fn save_server(&self) {
        copy_database(&self.database, &format!("{}_saved", self.databases)).await;
    }

    /// Puts the copy in the place of the server's database, and starts a server on it. That takes a while.
    pub(crate) async fn restore_server(&mut self) {
        self.later(1);
        self.lives += 1;
        self.database = format!("{}_{}", self.databases, self.lives);
        copy_database(&format!("{}_saved", self.databases), &self.database).await;
        self.another_server().await;
    }

    pub(crate) fn start_link(&self) -> Link {
        let address: SocketAddr = self.proxy.address;
        Link::start(format!("http://{address}"), self.operator.clone())
    }

    /// Somebody who is in no team yet.
    pub(crate) fn person(&self, name: &str) -> Person {
        let folder = self.folder.path().join(name);
        let saved = self.folder.path().join(format!("{name}-saved"));
        let home =
            Arc::new(Home { folder, clock: Arc::clone(&self.clock), open: Mutex::default() });
        let teams = Teams::new(Arc::clone(&home) as _, Arc::clone(&self.clock) as _);
        Person { name: name.to_owned(), home, teams, died: Arc::clone(&self.proxy.died), saved }
    }

    /// An owner with the shared conversation `plans`, in which one message was said.
    pub(crate) async fn anna(&self) -> Person {
        let anna = self.person("Anna");
        anna.teams.create(&self.start_link(), "Acme", "Anna").await.unwrap();
        anna.says(PLANS, "We meet on Monday").await;
        anna.teams.share(None, &scope(PLANS)).await.unwrap();
        anna.sync().await;
        anna
    }

    /// Somebody who was invited to `plans`.
    pub(crate) async fn guest(&self, owner: &Person, name: &str, level: Level) -> Person {
        let guest = self.invited(owner, name, level).await;
        guest.sync().await;
        guest
    }

    /// The same, before anything was exchanged.
    pub(crate) async fn invited(&self, owner: &Person, name: &str, level: Level) -> Person {
        let guest = self.person(name);
        let scopes = [scope(PLANS)];
        let invitation = owner.teams.invite(None, &scopes, (Role::Member, level), None);
        let link = invitation.await.unwrap().reveal().parse().unwrap();
        let joined = guest.teams.join(&link, name).await.unwrap();
        assert_eq!(joined.conversations, [scope(PLANS)]);
        guest
    }

    pub(crate) fn later(&self, seconds: i64) {
        self.clock.advance(SignedDuration::from_secs(seconds));
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Copies a database of which nothing is written meanwhile.
async fn copy_database(from: &str, to: &str) {
    if !from.starts_with("postgres") {
        for part in ["", "-wal"] {
            let (from, to) = (format!("{from}{part}"), format!("{to}{part}"));
            let _ = std::fs::remove_file(&to);
            let _ = std::fs::copy(from, to);
        }
        return;
    }
    let client = connect(&std::env::var(POSTGRES).unwrap()).await;
    let name = |url: &str| url.rsplit_once('/').unwrap().1.to_owned();
    let (from, to) = (name(from), name(to));
    client.batch_execute(&format!("DROP DATABASE IF EXISTS {to}")).await.unwrap();
    let end =
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{from}'");
    client.batch_execute(&end).await.unwrap();
    client.batch_execute(&format!("CREATE DATABASE {to} TEMPLATE {from}")).await.unwrap();
}

async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn postgres(url: &str) -> String {
    let name = format!("test_{}", sottovoce_team_server::api::Id::random().unwrap());
    let client = connect(url).await;
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let (server, _) = url.rsplit_once('/').unwrap();
    format!("{server}/{name}")
}

pub(crate) fn scope(text: &str) -> Scope {
    text.parse().unwrap()
}

impl Person {
    pub(crate) async fn store(&self, name: &str) -> FileConversationStore {
        self.home.open(&scope(name)).await.unwrap()
    }

    pub(crate) async fn says(&self, name: &str, words: &str) {
        let clock = &self.home.clock;
        clock.advance(SignedDuration::from_millis(7));
        let now = clock.now().timestamp();
        let message = ChatMessage::at(ChatRole::User, words, now);
        self.store(name).await.append_message(message).await.unwrap();
    }

    pub(crate) async fn forgets(&self, name: &str, words: &str) {
        let store = self.store(name).await;
        let reading = store.read_tail(usize::MAX).await.unwrap();
        let found = reading.messages.iter().filter(|stored| stored.message.content == words);
        let seqs: Vec<_> = found.map(|stored| stored.seq..=stored.seq).collect();
        assert!(!seqs.is_empty(), "{words} is not there");
        store.forget(&seqs).await.unwrap();
    }

    /// What the member may do with the conversation, as far as its store knows.
    pub(crate) async fn level(&self) -> Option<Level> {
        let teams = self.teams.status().await.unwrap();
        teams[0].conversations.first().and_then(|conversation| conversation.level)
    }

    /// Its identifier, if it is a member still.
    pub(crate) async fn id(&self) -> TeamResult<String> {
        let members = self.teams.members(None).await?;
        Ok(members.into_iter().find(|member| member.is_own).unwrap().id)
    }

    /// Gives the conversation a title.
    pub(crate) async fn sets_title(&self, title: &str) {
        let title = Some(title.to_owned());
        let change = Box::new(move |profile: &mut Profile| profile.rename(title.clone()));
        self.store(PLANS).await.change_profile(change).await.unwrap();
    }

    pub(crate) async fn title(&self) -> Option<String> {
        self.store(PLANS).await.profile().await.unwrap().title.clone()
    }

    /// Exchanges what is new, and finds nothing wrong.
    pub(crate) async fn sync(&self) -> SyncReport {
        let report = self.teams.sync(|_| {}).await.unwrap();
        assert_eq!(report.problems, [], "{}", self.name);
        report
    }

    /// What is found wrong.
    pub(crate) async fn problems(&self) -> Vec<Problem> {
        self.teams.sync(|_| {}).await.unwrap().problems
    }

    /// Exchanges what is new until the process dies.
    pub(crate) async fn sync_or_die(&self) -> Option<TeamResult<SyncReport>> {
        tokio::select! {
            report = self.teams.sync(|_| {}) => Some(report),
            () = self.died.notified() => None,
        }
    }

    /// What is in a conversation, as `speaker: words`.
    pub(crate) async fn holds(&self, name: &str) -> Vec<String> {
        let reading = self.store(name).await.read_tail(usize::MAX).await.unwrap();
        assert!(reading.skipped.is_empty());
        let line = |message: &ChatMessage| match message.speaker() {
            Some(speaker) => format!("{speaker}: {}", message.content),
            None => message.content.clone(),
        };
        reading.messages.iter().map(|stored| line(&stored.message)).collect()
    }

    /// Its words alone, sorted.
    pub(crate) async fn words(&self, name: &str) -> Vec<String> {
        let reading = self.store(name).await.read_tail(usize::MAX).await.unwrap();
        let mut words: Vec<String> =
            reading.messages.iter().map(|stored| stored.message.content.clone()).collect();
        words.sort();
        words
    }

    /// Keeps a copy of the store, and puts it back.
    pub(crate) fn save(&self) {
        copy(&self.home.folder, &self.saved);
    }

    pub(crate) fn restore(&self) {
        self.home.open.lock().unwrap().clear();
        copy(&self.saved, &self.home.folder);
    }
}
