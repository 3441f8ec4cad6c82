//! Rights that are taken away while a request is on its way

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sottovoce_team_server::api::{Id, Secret};
use sottovoce_team_server::{
    Database, Load, Outcome, Positions, Rate, RecordBatch, Result, Step, Team, listen, routes,
    serve, statements,
};
use tokio_util::sync::CancellationToken;

use crate::harness::{Member, Server, Setup, base64, engines, forgetting, message};
use crate::http::Connection;

const REMOVE: &str = "DELETE FROM member WHERE id = $1";
const DEMOTE: &str = "UPDATE member SET role = 1 WHERE id = $1";
const REDUCE: &str = "UPDATE grant_ SET level = 1 WHERE member = $1";
const TO_ADMIN: &str = "UPDATE member SET role = 2 WHERE id = $1";

/// A database in which somebody else takes a member's rights right after they were looked up.
#[derive(Debug)]
struct Meanwhile {
    inner: Arc<dyn Database>,
    /// What happens after the next lookup of this token.
    armed: Mutex<Option<(Vec<u8>, Vec<Step>)>>,
    /// How many lookups there were.
    lookups: AtomicUsize,
}

#[async_trait::async_trait]
impl Database for Meanwhile {
    async fn transact(&self, steps: Vec<Step>) -> Result<Outcome> {
        let is_lookup = steps[0].sql == statements::FIND_CALLERS;
        let asked = steps[0].values.first().cloned();
        let done = self.inner.transact(steps).await?;
        if is_lookup && let Some(sottovoce_team_server::Value::List(keys)) = asked {
            let armed = self
                .armed
                .lock()
                .unwrap()
                .take_if(|(token, _)| keys.iter().any(|key| key.starts_with(token)));
            if let Some((_, steps)) = armed {
                self.inner.transact(steps).await?;
            }
            self.lookups.fetch_add(1, Ordering::SeqCst);
        }
        Ok(done)
    }

    async fn append(&self, batch: &RecordBatch, steps: &[Step]) -> Result<Option<Positions>> {
        self.inner.append(batch, steps).await
    }

    fn load(&self) -> Load {
        self.inner.load()
    }
}

impl Meanwhile {
    /// Takes rights of a member after its next lookup.
    fn arm(&self, member: &Member, sql: &[&'static str]) {
        let token = statements::digest(&member.token.parse::<Secret>().unwrap());
        let steps = sql.iter().map(|sql| Step { sql, values: vec![member.id.into()], must: false });
        *self.armed.lock().unwrap() = Some((token, steps.collect()));
    }

    /// Waits for further lookups.
    async fn looked_up(&self, before: usize, more: usize) {
        while self.lookups.load(Ordering::SeqCst) < before + more {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn count(&self) -> usize {
        self.lookups.load(Ordering::SeqCst)
    }
}

async fn start(setup: &Setup) -> (Server, Member, Arc<Meanwhile>) {
    let database = Arc::new(Meanwhile {
        inner: setup.engine.open().await,
        armed: Mutex::default(),
        lookups: AtomicUsize::new(0),
    });
    let team = Team::new(Arc::clone(&database) as _, Arc::clone(&setup.objects))
        .clock(Arc::clone(&setup.clock) as _);
    let listening = listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let (address, stop) = (listening.address(), CancellationToken::new());
    let operator = Some(setup.operator.clone());
    let serving = serve(listening, team.clone(), operator, setup.limits, stop.clone());
    let server = Server { address, team, stop, task: tokio::spawn(serving) };
    let owner = server.owner().await;
    (server, owner, database)
}

/// All that the owner sees, without the member.
async fn seen(owner: &Member, conversation: Id, but: Id) -> Vec<Value> {
    let place = format!("context/conversations/{conversation}");
    let mut all = Vec::new();
    for path in ["members", "invitations", "tokens", "audit", "context/conversations"] {
        all.push(owner.get(path).await.json());
    }
    for path in ["", "/artifacts", "/grants"] {
        all.push(owner.get(&format!("{place}{path}")).await.json());
    }
    for list in ["members", "grants"] {
        for value in &mut all {
            if let Some(list) = value.get_mut(list).and_then(Value::as_array_mut) {
                list.retain(|of| of["id"] != json!(but) && of["member"] != json!(but));
            }
        }
    }
    all
}

/// What a request of a route brings.
fn body(method: &str, path: &str) -> Value {
    match (method, path.rsplit('/').next().unwrap()) {
        ("POST", "invitations") => json!({ "role": "member" }),
        ("POST", "messages") => json!({ "records": [message(7), forgetting(8, &[1])] }),
        ("PATCH", _) => json!({ "role": "admin" }),
        ("PUT", "{member}") => json!({ "level": "read" }),
        ("PUT", _) => json!("an artifact"),
        ("POST", _) => json!({}),
        _ => Value::Null,
    }
}

/// Has a member ask for everything that the interface has, and takes its rights after each lookup. Returns the routes with the statuses.
async fn all_routes(
    setup: &Setup,
    taken: &[&'static str],
) -> Vec<(&'static str, &'static str, u16)> {
    let (_server, owner, database) = start(setup).await;
    let mut statuses = Vec::new();
    for (method, path) in routes().filter(|(_, path)| path.contains("{org}")) {
        let conversation = owner.conversation().await;
        owner.append(conversation, vec![message(1)]).await;
        let artifact = Id::random().unwrap();
        let place = format!("context/conversations/{conversation}");
        owner.put(&format!("{place}/artifacts/{artifact}"), json!("old")).await;
        let grant = json!([{ "conversation": conversation, "level": "manage" }]);
        let member = owner.invite("admin", grant.clone()).await;
        let other = owner.invite("member", grant).await;
        let invitation =
            owner.post("invitations", json!({ "role": "member" })).await.json()["id"].clone();
        let other_token = other.get("").await.json()["token"].clone();
        let is_new = method == "PUT" && path.ends_with("{artifact}");
        let artifact = if is_new { Id::random().unwrap() } else { artifact };
        let asked = path
            .replace("{org}", &owner.org.to_string())
            .replace("{conversation}", &conversation.to_string())
            .replace("{member}", &other.id.to_string())
            .replace("{artifact}", &artifact.to_string())
            .replace("{invitation}", invitation.as_str().unwrap())
            .replace("{token}", other_token.as_str().unwrap());
        let before = seen(&owner, conversation, member.id).await;
        database.arm(&member, taken);
        let answer = member.call(method, &asked, body(method, path)).await;
        assert!(database.armed.lock().unwrap().is_none(), "{method} {path} looked up nothing");
        if answer.status >= 400 {
            let after = seen(&owner, conversation, member.id).await;
            assert!(before == after, "{method} {path} changed something: {}", answer.text());
        }
        statuses.push((method, path, answer.status));
    }
    statuses
}

#[tokio::test]
async fn a_member_who_is_removed_after_the_lookup_reads_and_changes_nothing() {
    for engine in engines().await {
        for (method, path, status) in all_routes(&Setup::new(engine), &[REMOVE]).await {
            assert_eq!(status, 401, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn a_member_whose_rights_shrink_after_the_lookup_does_only_what_is_left() {
    let beyond = [
        "PATCH /members/{member}",
        "DELETE /members/{member}",
        "POST /invitations",
        "GET /invitations",
        "DELETE /invitations/{invitation}",
        "GET /audit",
        "DELETE /context/conversations/{conversation}",
        "POST /context/conversations/{conversation}/messages",
        "PUT /context/conversations/{conversation}/grants/{member}",
        "DELETE /context/conversations/{conversation}/grants/{member}",
        "PUT /context/conversations/{conversation}/artifacts/{artifact}",
        "DELETE /context/conversations/{conversation}/artifacts/{artifact}",
    ];
    for engine in engines().await {
        for (method, path, status) in all_routes(&Setup::new(engine), &[DEMOTE, REDUCE]).await {
            let route = format!("{method} {}", path.trim_start_matches("/api/v1/orgs/{org}"));
            let expected = match route.as_str() {
                // Those of others are as if they did not exist.
                "DELETE /tokens/{token}" => 404..=404,
                route if beyond.contains(&route) => 403..=403,
                _ => 200..=204,
            };
            assert!(expected.contains(&status), "{route}: {status}");
        }
    }
}

#[tokio::test]
async fn a_body_that_ends_after_its_member_was_removed_is_not_stored() {
    for engine in engines().await {
        let setup = Setup::new(engine);
        let (_server, owner, database) = start(&setup).await;
        let conversation = owner.conversation().await;
        owner.append(conversation, vec![message(1)]).await;
        let grant = json!([{ "conversation": conversation, "level": "write" }]);
        let place = format!("context/conversations/{conversation}");
        let artifact = format!("{place}/artifacts/{}", Id::random().unwrap());
        for (method, path, body) in [
            ("POST", format!("{place}/messages"), json!({ "records": [message(2)] })),
            ("POST", format!("{place}/messages"), json!({ "records": [forgetting(3, &[1])] })),
            ("PUT", artifact, json!("an artifact")),
        ] {
            let member = owner.invite("member", grant.clone()).await;
            let (before, body) = (database.count(), body.to_string().into_bytes());
            let mut connection = Connection::open(member.address).await.unwrap();
            let head = format!(
                "{method} {} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
                member.path(&path),
                member.token,
                body.len()
            );
            connection.send(head.as_bytes()).await.unwrap();
            connection.send(&body[..5]).await.unwrap();
            database.looked_up(before, 1).await;
            assert_eq!(owner.delete(&format!("members/{}", member.id)).await.status, 204);
            connection.send(&body[5..]).await.unwrap();
            assert_eq!(connection.answer().await.unwrap().status, 401, "{method} {path}");
        }
        let records = owner.read(conversation).await;
        assert_eq!(records.len(), 1, "{records:?}");
        assert!(records[0]["sealed"].is_string(), "it was not forgotten");
        let artifacts = owner.get(&format!("{place}/artifacts")).await.json();
        assert_eq!(artifacts["artifacts"], json!([]));
    }
}

#[tokio::test]
async fn a_long_poll_whose_member_is_removed_while_it_looks_shows_nothing() {
    for engine in engines().await {
        let setup = Setup::new(engine);
        let (_server, owner, database) = start(&setup).await;
        let conversation = owner.conversation().await;
        let grant = json!([{ "conversation": conversation, "level": "read" }]);
        for n in 0..2 {
            let member = owner.invite("member", grant.clone()).await;
            let seen = member.get("context/conversations").await.json()["seen"].clone();
            let path = match n {
                0 => format!("context/conversations/{conversation}/changes?after=0&wait=30"),
                _ => format!("context/conversations?seen={}&wait=30", seen.as_str().unwrap()),
            };
            let (before, waiting) = (database.count(), member.clone());
            let waiting = tokio::spawn(async move { waiting.get(&path).await });
            // A poll of changes looks once more after it has begun to listen.
            database.looked_up(before, 2 - n).await;
            database.arm(&member, &[REMOVE]);
            owner.append(conversation, vec![message(n as u64)]).await;
            let answer = waiting.await.unwrap();
            assert_eq!(answer.status, 401, "{}", answer.text());
        }
    }
}

#[tokio::test]
async fn a_change_of_a_member_happens_as_a_whole_or_not_at_all() {
    for engine in engines().await {
        let (_server, owner) = Setup::new(engine).start_with_owner().await;
        let (member, second) =
            (owner.invite("member", json!([])).await, owner.invite("owner", json!([])).await);
        let listed = async |who: Id| {
            let members = owner.get("members").await.json();
            let members = members["members"].as_array().unwrap().clone();
            let found = members.into_iter().find(|member| member["id"] == json!(who)).unwrap();
            (found["role"].clone(), found["profile"].clone())
        };
        let name = base64(b"sealed name");
        let both = |role: &str, profile: &str| json!({ "role": role, "profile": profile });
        let of_other = owner.patch(&format!("members/{}", member.id), both("admin", &name)).await;
        assert_eq!(of_other.status, 403, "{}", of_other.text());
        assert_eq!(listed(member.id).await, (json!("member"), Value::Null));
        let own = format!("members/{}", second.id);
        let long = base64(&[7; 2000]);
        assert_eq!(second.patch(&own, both("member", &long)).await.status, 413);
        assert_eq!(
            member.patch(&format!("members/{}", member.id), both("admin", &name)).await.status,
            403
        );
        assert_eq!(listed(second.id).await, (json!("owner"), Value::Null));
        assert_eq!(listed(member.id).await, (json!("member"), Value::Null));
        assert_eq!(second.patch(&own, both("admin", &name)).await.status, 204);
        assert_eq!(listed(second.id).await, (json!("admin"), json!(name)));
    }
}

#[tokio::test]
async fn a_role_counts_as_it_is_when_something_is_done_to_a_member_of_a_higher_one() {
    for engine in engines().await {
        let setup = Setup::new(engine);
        let (_server, owner, database) = start(&setup).await;
        let token = owner.get("").await.json()["token"].as_str().unwrap().to_owned();
        for (method, path, body, expected) in [
            ("PATCH", format!("members/{}", owner.id), json!({ "role": "member" }), 403),
            ("DELETE", format!("members/{}", owner.id), Value::Null, 403),
            ("DELETE", format!("tokens/{token}"), Value::Null, 404),
        ] {
            let second = owner.invite("owner", json!([])).await;
            database.arm(&second, &[TO_ADMIN]);
            let answer = second.call(method, &second.path(&path), body).await;
            assert_eq!(answer.status, expected, "{method} {path} {}", answer.text());
            assert_eq!(owner.get("").await.json()["role"], "owner");
        }
    }
}

#[tokio::test]
async fn guesses_at_invitations_do_not_keep_the_invited_out() {
    for engine in engines().await {
        let mut setup = Setup::new(engine);
        setup.limits.strangers = Rate { per_second: 0.001, burst: 5.0 };
        let (_server, owner) = setup.start_with_owner().await;
        let invitation = owner.post("invitations", json!({ "role": "member" })).await.json();
        let accept = async |secret: &Value| {
            let body = json!({ "invitation": secret });
            owner.call("POST", "/api/v1/invitations/accept", body).await.status
        };
        let guess = json!(Secret::random().unwrap().reveal().to_string());
        let mut guesses = Vec::new();
        for _ in 0..7 {
            guesses.push(accept(&guess).await);
        }
        assert_eq!(guesses, [404, 404, 404, 404, 404, 429, 429]);
        assert_eq!(accept(&invitation["invitation"]).await, 201);
    }
}
