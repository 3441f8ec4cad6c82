//! What the server holds tells nobody what was said, by whom, or about what

use sottovoce::ConversationStore;
use sottovoce::store::{ArtifactKind, ArtifactStore, NewArtifact};
use sottovoce_team::Level;

use crate::house::{House, PLANS};

const CANARIES: [&str; 8] = [
    "CANARYWORD",
    "CANARYTITLE",
    "CANARYTAG",
    "CANARYFILE",
    "CANARYBYTES",
    "CANARYANNA",
    "CANARYTEAM",
    "plans",
];

#[tokio::test]
async fn no_word_name_or_key_is_in_the_database_the_objects_or_the_requests() {
    let house = House::new().await;
    let anna = house.person("CANARYANNA");
    anna.teams.create(&house.start_link(), "CANARYTEAM", "CANARYANNA").await.unwrap();
    anna.says(PLANS, "CANARYWORD").await;
    anna.store(PLANS)
        .await
        .change_profile(Box::new(|profile| {
            profile.rename(Some("CANARYTITLE".to_owned()));
            profile.tags = ["CANARYTAG".to_owned()].into();
        }))
        .await
        .unwrap();
    let new = NewArtifact::new(ArtifactKind::File, "CANARYFILE");
    let content = std::io::Cursor::new(b"CANARYBYTES".repeat(1000));
    anna.store(PLANS).await.add_artifact(new, Box::new(content)).await.unwrap();
    anna.teams.share(None, &crate::house::scope(PLANS)).await.unwrap();
    anna.sync().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    ben.says(PLANS, "CANARYWORD").await;
    ben.sync().await;
    anna.sync().await;
    let mut held: Vec<u8> = house.proxy.asked().join("\n").into_bytes();
    for (name, object) in house.objects.objects() {
        held.extend(name.into_bytes());
        held.extend_from_slice(&object);
    }
    for entry in std::fs::read_dir(house.folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            held.extend(std::fs::read(path).unwrap());
        }
    }
    assert!(held.len() > 10_000);
    for canary in CANARIES {
        let found = held.windows(canary.len()).any(|window| window == canary.as_bytes());
        assert!(!found, "{canary}");
    }
}

#[tokio::test]
async fn no_debug_output_or_error_shows_a_token_a_key_or_words() {
    let house = House::new().await;
    let anna = house.anna().await;
    let link = anna
        .teams
        .invite(
            None,
            &[crate::house::scope(PLANS)],
            (sottovoce_team::Role::Member, Level::Read),
            None,
        )
        .await
        .unwrap();
    let secret = link.reveal();
    let (_, secret) = secret.split_once('#').unwrap();
    let shown = format!("{link:?} {:?} {:?}", anna.teams, anna.teams.status().await.unwrap());
    assert!(!shown.contains(secret) && !shown.contains("Monday"), "{shown}");
    let mistyped = format!("https://example.org/#{}x", secret);
    let error = mistyped.parse::<sottovoce_team::Link>().unwrap_err();
    assert!(!format!("{error} {error:?}").contains(secret.split_at(20).0));
}
