//! What a store has in the end

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::sync::Arc;

use jiff::Timestamp;
use sottovoce::context::recall::{Recall, SearchQuery};
use sottovoce::exchange::{Exchange, Origin};
use sottovoce::store::ArtifactStore as _;
use sottovoce::{FileConversationStore, Scope};
use sottovoce_sync::Conversations as _;

use crate::home::Home;

pub(super) fn scope(number: u64) -> Scope {
    match number % 3 {
        0 => Scope::Default,
        1 => Scope::Named { id: "kitchen".to_owned() },
        _ => Scope::Dm { user: "42".to_owned() },
    }
}

/// What a store has: the texts of each conversation by origin, and what was forgotten there.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Contents {
    pub(super) messages: BTreeMap<(Scope, Origin), String>,
    /// The time that orders each message.
    pub(super) places: BTreeMap<String, Timestamp>,
    pub(super) doubled: Vec<String>,
    pub(super) forgotten: BTreeSet<Origin>,
    pub(super) settings: BTreeMap<String, String>,
}

pub(super) fn text_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}

pub(super) async fn contents(home: &Home) -> Result<Contents, String> {
    let mut contents = Contents::default();
    let root = Exchange::new(home.store(&Scope::Default).await);
    for number in 0..3 {
        let forgotten = root.forgotten_with(&scope(number)).await.map_err(text_of)?;
        contents.forgotten.extend(forgotten);
    }
    for scope in home.scopes().await.map_err(text_of)? {
        let exchange = Exchange::new(home.store(&scope).await);
        let mut after = 0;
        let mut texts = BTreeSet::new();
        loop {
            let read = exchange.messages(after).await.map_err(text_of)?;
            for found in read.messages {
                let text = found.message.message.content.clone();
                if !texts.insert(text.clone()) {
                    contents.doubled.push(text.clone());
                }
                contents.places.insert(text.clone(), found.message.at);
                contents.messages.insert((scope.clone(), found.message.origin), text);
            }
            after = read.read_to;
            if read.read_to >= read.last_seq {
                break;
            }
        }
        contents.forgotten.extend(exchange.forgotten().await.map_err(text_of)?);
        for (name, value) in exchange.settings().await.map_err(text_of)? {
            // A clear applies up to the time of each device's own clock.
            let value = if name == "cleared" { String::new() } else { value.to_string() };
            contents.settings.insert(format!("{scope} {name}"), value);
        }
        for (id, snapshot) in exchange.snapshots().await.map_err(text_of)? {
            let text = serde_json::to_string(&snapshot).unwrap();
            contents.settings.insert(format!("{scope} snapshot {id}"), text);
        }
        for (id, artifact) in exchange.artifacts().await.map_err(text_of)? {
            if let Some(artifact) = artifact {
                let mut text = format!("{}: ", artifact.name);
                if let Some(mut bytes) =
                    exchange.store().open_artifact(&id).await.map_err(text_of)?
                {
                    bytes.read_to_string(&mut text).map_err(text_of)?;
                }
                contents.settings.insert(format!("{scope} artifact {id}"), text);
            }
        }
    }
    Ok(contents)
}

/// Searches a conversation by an index that may have been saved at any time, and saves it. The index must find what is
/// there and nothing else.
pub(super) async fn search(store: FileConversationStore) -> Result<(), String> {
    let scope = store.scope().to_string();
    let mut texts = BTreeSet::new();
    let recall = Recall::new(Arc::new(store.clone()));
    let exchange = Exchange::new(store);
    let mut after = 0;
    loop {
        let read = exchange.messages(after).await.map_err(text_of)?;
        let found = read.messages.into_iter().map(|found| found.message.message.content.clone());
        texts.extend(found);
        after = read.read_to;
        if after >= read.last_seq {
            break;
        }
    }
    let query = SearchQuery::parse("word").map_err(text_of)?;
    let found = recall.search(&query, None, 1000).await.map_err(text_of)?;
    let found: BTreeSet<String> =
        found.hits.iter().map(|stored| stored.message.content.clone()).collect();
    recall.save().await.map_err(text_of)?;
    match found == texts {
        true => Ok(()),
        false => Err(format!("the index of {scope} finds {found:?} of {texts:?}")),
    }
}
