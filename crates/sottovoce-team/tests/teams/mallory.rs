//! A member who may write, and writes what the program never would

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use sottovoce::Scope;
use sottovoce::exchange::{ObjectKind, Origin, Sharing, SpaceKey};
use sottovoce::http::client_builder;
use sottovoce_sync::Conversations;
use sottovoce_team_server::api::{Id, Rid, Sealed, Secret};

use crate::house::{House, Person};

/// What the member's store knows: its token, and the keys of the first conversation.
pub(crate) struct Mallory {
    client: Client,
    /// Of the conversation, at the proxy.
    url: String,
    token: String,
    device: Value,
    keys: Vec<SpaceKey>,
}

/// A record of the log, and what it says if it opens.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) record: Value,
    pub(crate) contents: Option<Value>,
}

impl Seen {
    /// The words of a message.
    pub(crate) fn words(&self) -> Option<&str> {
        self.contents.as_ref()?.pointer("/said/message/content")?.as_str()
    }

    /// The number of the store that wrote it.
    pub(crate) fn writer(&self) -> Option<&str> {
        self.contents.as_ref()?["writer"].as_str()
    }
}

impl Mallory {
    pub(crate) async fn of(house: &House, person: &Person) -> Self {
        let root = person.home.open(&Scope::Default).await.unwrap();
        let version: (u64, fn(&Value) -> u64) = (1, |state| state["v"].as_u64().unwrap());
        let state = sottovoce_sync::read_state(&root, Sharing::Teams, version).await.unwrap();
        let state = state.unwrap();
        let (org, team) = state["teams"].as_object().unwrap().iter().next().unwrap();
        let conversations = team["conversations"].as_object().unwrap();
        let (id, shared) = conversations.iter().next().unwrap();
        let keys = shared["keys"].as_array().unwrap().iter().map(|key| {
            let secret: Secret = key.as_str().unwrap().parse().unwrap();
            SpaceKey::new(id, secret.as_bytes()).unwrap()
        });
        let address = house.proxy.address;
        Self {
            client: client_builder(false).unwrap().no_proxy().build().unwrap(),
            url: format!("http://{address}/api/v1/orgs/{org}/context/conversations/{id}"),
            token: team["token"].as_str().unwrap().to_owned(),
            device: team["device"].clone(),
            keys: keys.collect(),
        }
    }

    async fn ask(&self, method: Method, rest: &str, body: String) -> (StatusCode, Value) {
        let request = self.client.request(method, format!("{}{rest}", self.url)).body(body);
        let answer = request.bearer_auth(&self.token).send().await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or_default())
    }

    /// The log, as far as the member may read it.
    pub(crate) async fn log(&self) -> Vec<Seen> {
        let (_, page) = self.ask(Method::GET, "/changes?after=0", String::new()).await;
        let records = page["records"].as_array().cloned().unwrap_or_default();
        records.into_iter().map(|record| Seen { contents: self.open(&record), record }).collect()
    }

    fn open(&self, record: &Value) -> Option<Value> {
        let sealed: Sealed = serde_json::from_value(record.get("sealed")?.clone()).unwrap();
        let (rid, sealed) = (record["rid"].as_str().unwrap(), sealed.into_bytes());
        let opened = |key: &SpaceKey| key.open(ObjectKind::Record, "", rid, &sealed);
        serde_json::from_slice(&self.keys.iter().find_map(opened)?).ok()
    }

    /// Appends records. Returns the status of the answer.
    pub(crate) async fn appends(&self, records: &[Value]) -> StatusCode {
        self.ask(Method::POST, "/messages", json!({ "records": records }).to_string()).await.0
    }

    /// A record that says this, under its own name or a random one.
    pub(crate) fn record(&self, kind: &str, rid: Option<String>, contents: &Value) -> Value {
        let rid = rid.unwrap_or_else(|| Rid::random().unwrap().to_string());
        let mut contents = contents.clone();
        // Otherwise all see that another device is named.
        contents.as_object_mut().unwrap().entry("device").or_insert_with(|| self.device.clone());
        let text = contents.to_string();
        let key = self.keys.last().unwrap();
        let sealed = key.seal(ObjectKind::Record, "", &rid, text.as_bytes()).unwrap();
        json!({ "rid": rid, "kind": kind, "sealed": Sealed::from(sealed) })
    }

    /// A record that no key opens.
    pub(crate) fn garbage(kind: &str) -> Value {
        json!({ "rid": Rid::random().unwrap(), "kind": kind, "sealed": Sealed::from(vec![7; 300]) })
    }

    /// Words like those of a record, with the number that the record has.
    pub(crate) fn words_like(&self, like: &Value, words: &str) -> Value {
        let mut contents = like.clone();
        let origin: Origin = serde_json::from_value(json!(Id::random().unwrap())).unwrap();
        contents["said"]["origin"] = json!(origin);
        contents["said"]["message"]["content"] = json!(words);
        let rid = self.keys.first().unwrap().pseudonym(origin);
        self.record("message", Some(rid), &contents)
    }
}
