//! What the server must not have: words, keys and tokens are neither in the database nor in the log

use std::io::Write;
use std::sync::{Arc, Mutex};

use jiff::SignedDuration;
use serde_json::{Value, json};
use sottovoce_remote::testing::MemoryRemote;
use sottovoce_team_server::api::{Id, Secret};
use tracing_subscriber::fmt::MakeWriter;

use crate::harness::{Engine, Setup, engines, forgetting, message};

/// The log of this process.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// All bytes that the database has.
async fn bytes(engine: &Engine) -> Vec<u8> {
    if !engine.is_postgres {
        let mut all = Vec::new();
        for suffix in ["", "-wal", "-shm"] {
            let mut file = engine.file().into_os_string();
            file.push(suffix);
            all.extend(std::fs::read(file).unwrap_or_default());
        }
        return all;
    }
    // Every table as text, in which bytes are hexadecimal, and as binary.
    let client = engine.client().await;
    let tables = client
        .query("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'", &[])
        .await
        .unwrap();
    let mut all = Vec::new();
    for table in &tables {
        let table: String = table.get(0);
        for row in client.query(&format!("SELECT t::text FROM {table} t"), &[]).await.unwrap() {
            let text: String = row.get(0);
            all.extend(text.as_bytes());
            for part in text.split("\\x").skip(1) {
                let hex: String = part.chars().take_while(char::is_ascii_hexdigit).collect();
                all.extend(
                    (0..hex.len() / 2)
                        .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()),
                );
            }
        }
    }
    all
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn tokens_and_forgotten_contents_are_nowhere() {
    // The log of all tests of this process.
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    for engine in engines().await {
        let objects = Arc::new(MemoryRemote::new());
        let setup = Setup { objects: Arc::clone(&objects) as _, ..Setup::new(engine.clone()) };
        let (server, owner) = setup.start_with_owner().await;
        let conversation = owner.conversation().await;
        let member = owner
            .invite("member", json!([{ "conversation": conversation, "level": "write" }]))
            .await;
        let invitation =
            owner.post("invitations", json!({ "role": "member" })).await.json()["invitation"]
                .as_str()
                .unwrap()
                .to_owned();
        let issued =
            owner.post("tokens", json!({})).await.json()["token"].as_str().unwrap().to_owned();
        owner.append(conversation, (1000..1300).map(message).collect()).await;
        member.append(conversation, vec![forgetting(1, &[1111])]).await;
        // Words in the wrong places: paths, parameters, bodies that cannot be read.
        let canary = "canary-of-a-careless-client";
        for body in [
            json!({ canary: canary }),
            json!({ "records": canary }),
            json!({ "records": [{ "rid": canary }] }),
            json!(canary),
        ] {
            let answer =
                owner.post(&format!("context/conversations/{conversation}/messages"), body).await;
            assert_eq!(answer.status, 400);
            assert!(!answer.text().contains("canary"), "{}", answer.text());
        }
        let status = owner
            .get(&format!("context/conversations/{canary}?after={canary}&{canary}={canary}"))
            .await
            .status;
        assert_eq!(status, 400);
        owner.call("GET", &format!("/{canary}"), Value::Null).await;
        setup.clock.advance(SignedDuration::from_hours(24 * 31));
        server.team.upkeep().await.unwrap();

        // A failure that is logged.
        objects.restore(std::collections::BTreeMap::new());
        assert_eq!(owner.get(&format!("context/conversations/{conversation}")).await.status, 500);

        let mut secrets: Vec<Vec<u8>> = vec![canary.as_bytes().to_vec(), b"sealed 1111".to_vec()];
        for token in [&owner.token, &member.token, &invitation, &issued, &setup.operator.reveal()] {
            let secret: Secret = token.parse().unwrap();
            secrets.push(token.as_bytes().to_vec());
            secrets.push(secret.as_bytes().to_vec());
            secrets.push(
                secret
                    .as_bytes()
                    .iter()
                    .flat_map(|byte| format!("{byte:02x}").into_bytes())
                    .collect(),
            );
        }
        let (database, logged) = (bytes(&engine).await, log.0.lock().unwrap().clone());
        let conversation: Id = conversation;
        assert!(holds(&database, conversation.as_bytes()), "the search finds what is there");
        for secret in &secrets {
            assert!(
                !holds(&database, secret),
                "{} in the database",
                String::from_utf8_lossy(secret)
            );
            assert!(!holds(&logged, secret), "{} in the log", String::from_utf8_lossy(secret));
        }
        assert!(!holds(&logged, b"sealed 1"));
        let debug = format!("{:?} {:?}", server.team, setup.operator);
        assert!(!debug.contains(setup.operator.reveal().as_str()));
    }
    let logged = log.0.lock().unwrap().clone();
    assert!(holds(&logged, b"a request failed"), "{}", String::from_utf8_lossy(&logged));
}
