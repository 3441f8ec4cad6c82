//! The server of format 1: what `tests/fixtures/v1/make.py` made once, every later server serves, and a later member reads.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sottovoce::store::{ArtifactStore, ConversationStore};
use sottovoce_remote::{Credentials, open};
use sottovoce_team::Link;
use sottovoce_team_server::{DatabaseOptions, Team, listen, open_database, serve};
use tokio_util::sync::CancellationToken;

use crate::home::copy;
use crate::house::{House, PLANS, wide};

#[tokio::test]
async fn a_server_of_format_1_lets_a_later_member_in_with_everything_that_is_shared() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/v1");
    let then: Value =
        serde_json::from_str(&std::fs::read_to_string(golden.join("team.json")).unwrap()).unwrap();
    let house = House::at(then["made"].as_str().unwrap().parse().unwrap()).await;
    let data = house.folder.path().join("golden");
    copy(&golden.join("team"), &data);
    let at = |name: &str| data.join(name).to_str().unwrap().to_owned();
    let database = open_database(&at("team.sqlite"), DatabaseOptions::default()).await.unwrap();
    let objects = open(&format!("file://{}", at("objects")), &Credentials::default()).unwrap();
    let team = Team::new(database, objects).clock(Arc::clone(&house.clock) as _);
    let listening = listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let address = format!("http://{}", listening.address());
    let stop = CancellationToken::new();
    tokio::spawn(serve(listening, team, None, wide(), stop.clone()));

    let link = moved(then["link"].as_str().unwrap(), &address);
    let carl = house.person("Carl");
    carl.teams.join(&link, "Carl").await.unwrap();
    carl.sync().await;
    let held = carl.holds(PLANS).await;
    let words: Vec<_> =
        then["holds"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(
        held.iter().filter(|line| words.contains(&line.as_str())).count(),
        words.len(),
        "{held:?}"
    );
    assert!(!held.iter().any(|line| line.contains("Nobody may read this")), "{held:?}");
    let store = carl.store(PLANS).await;
    assert_eq!(store.profile().await.unwrap().title.as_deref(), then["title"].as_str());
    assert_eq!(carl.teams.fetch_artifacts().await.unwrap(), 1);
    let (artifacts, _) = store.artifacts().await.unwrap();
    let mut content = String::new();
    let mut contents = store.open_artifact(&artifacts[0].id).await.unwrap().unwrap();
    contents.read_to_string(&mut content).unwrap();
    assert!(content.starts_with(then["artifact"].as_str().unwrap()), "{content}");
    carl.says(PLANS, "Carl is here").await;
    carl.sync().await;
    stop.cancel();
}

/// The link of a server that has another address now: a link ends with four bytes of the hash of its address and what it gives.
fn moved(link: &str, address: &str) -> Link {
    let (_, given) = link.split_once('#').unwrap();
    let mut given = BASE64URL_NOPAD.decode(given.as_bytes()).unwrap();
    given.truncate(given.len() - 4);
    let sum = Sha256::new().chain_update(address).chain_update(&given).finalize();
    given.extend(&sum[..4]);
    format!("{address}/#{}", BASE64URL_NOPAD.encode(&given)).parse().unwrap()
}
