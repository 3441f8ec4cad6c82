//! Appends, batches and empty polls a second through the server, against bare PostgreSQL with the same statements in the same run:
//! `SOTTOVOCE_POSTGRES=$(crates/sottovoce-team-server/start-postgres FOLDER) cargo bench -p sottovoce-team-server`
//!
//! The clients, the server and PostgreSQL share this machine. `-- --records N` sets how many records the large table has, 0 for
//! none; `-- --only WORDS` leaves out what has not these words in its title.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a benchmark"
)]

#[path = "../tests/teams/http.rs"]
#[allow(dead_code, reason = "shared with the tests")]
mod http;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use sottovoce_remote::testing::MemoryRemote;
use sottovoce_team_server::api::{Id, NewMember, Sealed};
use sottovoce_team_server::{
    DatabaseOptions, Limits, Quotas, Rate, Team, listen, open_database, serve, statements,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use http::Connection;

const CLIENTS: usize = 8;
const ROUND: Duration = Duration::from_secs(4);
const ROUNDS: usize = 3;
/// The sealed contents of a message of about 150 characters.
const SEALED: usize = 250;

#[derive(Clone, Copy, PartialEq)]
enum Work {
    Append(usize),
    Poll,
}

/// What a client of either kind needs.
#[derive(Clone)]
struct Client {
    address: SocketAddr,
    database: String,
    member: NewMember,
    conversation: Id,
}

/// The argument after this one.
fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

static NEXT: AtomicU64 = AtomicU64::new(1);

fn rid() -> Vec<u8> {
    // Spread as digests are.
    let n = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    [n, n, n, n].concat()
}

impl Client {
    /// Asks the server until the end. Returns how often.
    async fn through_server(&self, work: Work, end: Instant) -> u64 {
        let mut connection = Connection::open(self.address).await.unwrap();
        let token = self.member.token.token.reveal();
        let path =
            format!("/api/v1/orgs/{}/context/conversations/{}", self.member.org, self.conversation);
        let mut done = 0;
        while Instant::now() < end {
            let answer = match work {
                Work::Append(n) => connection
                    .call("POST", &format!("{path}/messages"), &token, &body(n))
                    .await
                    .unwrap(),
                Work::Poll => {
                    let path = format!("{path}/changes?after=1000000000");
                    connection.call("GET", &path, &token, b"").await.unwrap()
                }
            };
            assert_eq!(answer.status, 200, "{}", answer.text());
            done += 1;
        }
        done
    }

    /// Asks PostgreSQL what the server would ask it.
    async fn bare(&self, work: Work, end: Instant) -> u64 {
        let (client, connection) =
            tokio_postgres::connect(&self.database, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let find =
            statements::FIND_CALLERS.replace("EACH($1)", "(SELECT unnest($1::bytea[]) AS value)");
        let find = client.prepare(&find).await.unwrap();
        let append = client.prepare(statements::APPEND).await.unwrap();
        let token = statements::digest(&self.member.token.token);
        let (conversation, device) =
            (self.conversation.as_bytes().to_vec(), self.member.token.device.as_bytes().to_vec());
        let key = [token.clone(), conversation.clone()].concat();
        let mut done = 0;
        while Instant::now() < end {
            let rows = client.query(&find, &[&vec![&key]]).await.unwrap();
            assert_eq!(rows.len(), 1);
            if let Work::Append(n) = work {
                let rids: Vec<Vec<u8>> = (0..n).map(|_| rid()).collect();
                let (kinds, sealed) = (vec![1_i16; n], vec![vec![7_u8; SEALED]; n]);
                let forgets: Vec<Option<Vec<u8>>> = vec![None; n];
                let rows = client
                    .query(
                        &append,
                        &[
                            &conversation,
                            &rids,
                            &kinds,
                            &sealed,
                            &forgets,
                            &5_i64,
                            &device,
                            &token,
                            &2_i16,
                        ],
                    )
                    .await
                    .unwrap();
                assert_eq!(rows.len(), n);
            }
            done += 1;
        }
        done
    }
}

fn body(n: usize) -> Vec<u8> {
    let sealed = serde_json::to_value(Sealed::from(vec![7; SEALED])).unwrap();
    let sealed = sealed.as_str().unwrap();
    let records: Vec<String> = (0..n)
        .map(|_| {
            let rid: String = rid().iter().map(|byte| format!("{byte:02x}")).collect();
            format!(r#"{{"rid":"{rid}","kind":"message","sealed":"{sealed}"}}"#)
        })
        .collect();
    format!(r#"{{"records":[{}]}}"#, records.join(",")).into_bytes()
}

/// How much a second all clients do.
async fn rate(clients: &[Client], work: Work, is_bare: bool) -> f64 {
    let began = Instant::now();
    let end = began + ROUND;
    let mut tasks = tokio::task::JoinSet::new();
    for client in clients {
        let client = client.clone();
        tasks.spawn(async move {
            if is_bare {
                client.bare(work, end).await
            } else {
                client.through_server(work, end).await
            }
        });
    }
    let done: u64 = tasks.join_all().await.into_iter().sum();
    done as f64 / began.elapsed().as_secs_f64()
}

async fn compare(title: &str, clients: &[Client], work: Work) {
    if argument("--only").is_some_and(|words| !title.contains(&words)) {
        return;
    }
    let (mut bare, mut served) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(rate(clients, work, true).await);
        served.push(rate(clients, work, false).await);
    }
    bare.sort_by(f64::total_cmp);
    served.sort_by(f64::total_cmp);
    let (bare, served) = (bare[ROUNDS / 2], served[ROUNDS / 2]);
    let rows = if let Work::Append(n) = work {
        format!("{:>10.0}", served * n as f64)
    } else {
        format!("{:>10}", "")
    };
    println!("{title:<44} {bare:>10.0} {served:>10.0} {:>7.2} {rows}", served / bare);
}

async fn clients(
    team: &Team,
    database: &str,
    address: SocketAddr,
    same_conversation: bool,
) -> Vec<Client> {
    let mut clients: Vec<Client> = Vec::new();
    for _ in 0..CLIENTS {
        let known = clients.first().filter(|_| same_conversation).cloned();
        clients.push(match known {
            Some(client) => client,
            None => {
                let member = team.create_organisation(None).await.unwrap();
                let mut connection = Connection::open(address).await.unwrap();
                let path = format!("/api/v1/orgs/{}/context/conversations", member.org);
                let created = connection
                    .call("POST", &path, &member.token.token.reveal(), b"{}")
                    .await
                    .unwrap();
                let conversation = created.json()["id"].as_str().unwrap().parse().unwrap();
                Client { address, database: database.to_owned(), member, conversation }
            }
        });
    }
    clients
}

/// Fills a thousand conversations, in requests of a thousand records.
async fn fill(owner: &Client, records: usize) -> Vec<Client> {
    let began = Instant::now();
    let mut connection = Connection::open(owner.address).await.unwrap();
    let path = format!("/api/v1/orgs/{}/context/conversations", owner.member.org);
    let token = owner.member.token.token.reveal();
    let mut all = Vec::new();
    for _ in 0..1000 {
        let created = connection.call("POST", &path, &token, b"{}").await.unwrap();
        let conversation = created.json()["id"].as_str().unwrap().parse().unwrap();
        all.push(Client { conversation, ..owner.clone() });
    }
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let (all, next) = (all.clone(), Arc::clone(&next));
        tasks.spawn(async move {
            let mut connection = Connection::open(all[0].address).await.unwrap();
            let token = all[0].member.token.token.reveal();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed) as usize;
                if at * 1000 >= records {
                    return;
                }
                let client = &all[at % all.len()];
                let path = format!(
                    "/api/v1/orgs/{}/context/conversations/{}/messages",
                    client.member.org, client.conversation
                );
                let answer = connection.call("POST", &path, &token, &body(1000)).await.unwrap();
                assert_eq!(answer.status, 200, "{}", answer.text());
            }
        });
    }
    tasks.join_all().await;
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{records} records in 1,000 conversations were appended in {seconds:.1} s, {:.0} a second",
        records as f64 / seconds
    );
    all
}

async fn pages(clients: &[Client]) {
    let began = Instant::now();
    let (mut connection, mut records) = (Connection::open(clients[0].address).await.unwrap(), 0);
    let token = clients[0].member.token.token.reveal();
    for client in clients.iter().take(200) {
        let path = format!(
            "/api/v1/orgs/{}/context/conversations/{}",
            client.member.org, client.conversation
        );
        let page: Value = connection.call("GET", &path, &token, b"").await.unwrap().json();
        records += page["records"].as_array().unwrap().len();
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{records} records were read in pages of 1,000 by one client, {:.0} a second",
        records as f64 / seconds
    );
}

async fn sizes(client: &tokio_postgres::Client, when: &str) {
    let size = "SELECT (SELECT count(*) FROM record), sum(pg_table_size(inhrelid))::bigint, sum(pg_indexes_size(inhrelid))::bigint \
                FROM pg_inherits WHERE inhparent = 'record'::regclass";
    let row = client.query_one(size, &[]).await.unwrap();
    let (count, table, indexes): (i64, i64, i64) = (row.get(0), row.get(1), row.get(2));
    println!(
        "{count} records: {} bytes each in the table, {} in its indexes{when}",
        table / count,
        indexes / count
    );
}

#[tokio::main(flavor = "multi_thread")]
async fn main() {
    let records = argument("--records").map_or(1_000_000, |number| number.parse().unwrap());
    let Ok(url) = std::env::var("SOTTOVOCE_POSTGRES") else {
        eprintln!("SKIPPED: SOTTOVOCE_POSTGRES is not set; see `start-postgres`");
        return;
    };
    let name = format!("bench_{}", Id::random().unwrap());
    let (admin, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    admin.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let database = format!("{}/{name}", url.rsplit_once('/').unwrap().0);
    let rate_limit = Rate { per_second: 1e9, burst: 1e12 };
    let mut limits = Limits::default();
    (limits.member_requests, limits.member_bytes) = (rate_limit, rate_limit);
    (limits.org_requests, limits.strangers) = (rate_limit, rate_limit);
    let mut quotas = Quotas::default();
    quotas.bytes = 1 << 50;
    let opened = open_database(&database, DatabaseOptions::default()).await.unwrap();
    let team = Team::new(opened, Arc::new(MemoryRemote::default())).quotas(quotas);
    let listening = listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let (address, stop) = (listening.address(), CancellationToken::new());
    let serving = tokio::spawn(serve(listening, team.clone(), None, limits, stop.clone()));

    println!(
        "{CLIENTS} clients, {SEALED} sealed bytes a record, medians of {ROUNDS} rounds of {} s",
        ROUND.as_secs()
    );
    println!("{:<44} {:>10} {:>10} {:>7} {:>10}", "a second", "bare", "served", "ratio", "rows");
    let own = clients(&team, &database, address, false).await;
    let same = clients(&team, &database, address, true).await;
    compare("appends of 1, a conversation each", &own, Work::Append(1)).await;
    compare("appends of 20, a conversation each", &own, Work::Append(20)).await;
    compare("appends of 1, one conversation", &same, Work::Append(1)).await;
    compare("empty polls", &own, Work::Poll).await;
    let many: Vec<Client> = own.iter().cycle().take(8 * CLIENTS).cloned().collect();
    compare("empty polls, 64 clients", &many, Work::Poll).await;
    if records > 0 {
        large(&own[0], &team, quotas, &database, records).await;
    }
    stop.cancel();
    drop(serving.await);
    admin.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await.unwrap();
}

/// What happens in a large table, and once its records are in packs.
async fn large(owner: &Client, team: &Team, mut quotas: Quotas, database: &str, records: usize) {
    let all = fill(owner, records).await;
    pages(&all).await;
    let spread: Vec<Client> =
        all.iter().step_by(all.len() / CLIENTS).take(CLIENTS).cloned().collect();
    compare("appends of 1, in the large table", &spread, Work::Append(1)).await;
    compare("appends of 20, in the large table", &spread, Work::Append(20)).await;
    compare("empty polls, in the large table", &spread, Work::Poll).await;
    let (client, connection) =
        tokio_postgres::connect(database, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    sizes(&client, "").await;
    quotas.pack_after_days = 0;
    let began = Instant::now();
    let report = team.clone().quotas(quotas).upkeep().await.unwrap();
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{} records moved into packs in {seconds:.1} s, {:.0} a second",
        report.packed,
        report.packed as f64 / seconds
    );
    client.batch_execute("VACUUM FULL record").await.unwrap();
    sizes(&client, ", once they are packed").await;
    pages(&all).await;
}
