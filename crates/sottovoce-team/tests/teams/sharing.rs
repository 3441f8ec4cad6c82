//! What members share with each other

use sottovoce::store::{ArtifactKind, ArtifactStore, NewArtifact, Profile, SavedMessage, Snapshot};
use sottovoce::{ChatMessage, ChatRole, Clock, ConversationStore, Source};
use sottovoce_sync::Failure;
use sottovoce_team::{FetchedArtifact, Level};

use crate::house::{House, PLANS, Person, scope};

async fn change(person: &Person, change: impl FnMut(&mut Profile) + Send + 'static) {
    person.store(PLANS).await.change_profile(Box::new(change)).await.unwrap();
}

async fn title(person: &Person) -> Option<String> {
    person.store(PLANS).await.profile().await.unwrap().title.clone()
}

#[tokio::test]
async fn what_one_member_says_all_others_hold_with_its_name() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    assert_eq!(ben.holds(PLANS).await, ["Anna: We meet on Monday"]);
    ben.says(PLANS, "Tuesday is better").await;
    assert_eq!(ben.sync().await.published, 1);
    let report = anna.sync().await;
    assert_eq!((report.received, report.published), (1, 0));
    assert_eq!(anna.holds(PLANS).await, ["We meet on Monday", "Ben: Tuesday is better"]);
    assert_eq!(anna.sync().await, Default::default());
    assert_eq!(ben.sync().await, Default::default());
}

#[tokio::test]
async fn no_words_of_a_member_can_claim_to_come_from_elsewhere() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    let now = ben.home.clock.now();
    for role in [ChatRole::User, ChatRole::Assistant] {
        let claim = ChatMessage::new(role, "I am Anna, and I said this", &now);
        let claim = claim.from_source(Source::Typed, "").with_metadata("device", "hall");
        ben.store(PLANS).await.append_message(claim).await.unwrap();
    }
    ben.sync().await;
    anna.sync().await;
    let read = anna.store(PLANS).await.read_tail(2).await.unwrap().messages;
    let sources: Vec<_> = read.iter().map(|stored| stored.message.source_in_words()).collect();
    assert_eq!(sources, ["member Ben", "member Ben"]);
    assert_eq!(anna.sync().await, Default::default());
    assert_eq!(ben.sync().await, Default::default());
}

#[tokio::test]
async fn what_is_said_without_the_server_is_stored_at_once_and_shared_later() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    house.proxy.decide(|_| crate::proxy::Fate::Lose);
    ben.says(PLANS, "offline").await;
    let error = ben.teams.sync(|_| {}).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    assert_eq!(ben.holds(PLANS).await.len(), 2);
    house.proxy.calm();
    ben.sync().await;
    anna.sync().await;
    assert_eq!(anna.holds(PLANS).await, ["We meet on Monday", "Ben: offline"]);
}

#[tokio::test]
async fn what_one_member_forgets_leaves_all_stores_and_does_not_come_back() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    ben.says(PLANS, "a secret").await;
    ben.sync().await;
    anna.sync().await;
    anna.forgets(PLANS, "a secret").await;
    assert_eq!(anna.sync().await.forgotten, 1);
    assert_eq!(ben.sync().await.removed, 1);
    let carl = house.guest(&anna, "Carl", Level::Write).await;
    for person in [&anna, &ben, &carl] {
        person.sync().await;
        assert_eq!(person.words(PLANS).await, ["We meet on Monday"], "{}", person.name);
    }
}

#[tokio::test]
async fn a_conversation_that_was_forgotten_completely_is_forgotten_by_all_and_can_go_on() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    ben.says(PLANS, "more").await;
    ben.sync().await;
    anna.sync().await;
    let store = anna.store(PLANS).await;
    store.forget_all().await.unwrap();
    assert!(store.clone().remove_forgotten().await.unwrap());
    anna.sync().await;
    ben.sync().await;
    assert_eq!(ben.words(PLANS).await, [""; 0]);
    ben.says(PLANS, "anew").await;
    ben.sync().await;
    anna.sync().await;
    anna.says(PLANS, "me too").await;
    anna.sync().await;
    ben.sync().await;
    for person in [&anna, &ben] {
        assert_eq!(person.words(PLANS).await, ["anew", "me too"], "{}", person.name);
    }
}

#[tokio::test]
async fn titles_and_tags_are_shared_and_of_two_at_once_all_keep_the_same() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    change(&anna, |profile| {
        profile.rename(Some("Plans of May".to_owned()));
        profile.tags = ["work".to_owned()].into();
    })
    .await;
    anna.sync().await;
    ben.sync().await;
    assert_eq!(title(&ben).await.as_deref(), Some("Plans of May"));
    change(&anna, |profile| profile.rename(Some("from Anna".to_owned()))).await;
    change(&ben, |profile| profile.rename(Some("from Ben".to_owned()))).await;
    for person in [&anna, &ben, &anna, &ben] {
        person.sync().await;
    }
    assert_eq!(title(&anna).await.as_deref(), Some("from Ben"));
    assert_eq!(title(&ben).await, title(&anna).await);
    change(&anna, |profile| profile.rename(None)).await;
    anna.sync().await;
    ben.sync().await;
    assert_eq!(title(&ben).await, None);
    assert_eq!(ben.sync().await, Default::default());
    // Limits and clears are everybody's own.
    ben.store(PLANS).await.clear().await.unwrap();
    ben.sync().await;
    anna.sync().await;
    assert_eq!(anna.store(PLANS).await.profile().await.unwrap().cleared, None);
}

#[tokio::test]
async fn snapshots_are_shared_and_a_deleted_one_is_gone_everywhere() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    let store = anna.store(PLANS).await;
    let stored = store.read_tail(1).await.unwrap().messages.remove(0);
    let saved = vec![SavedMessage::new(stored.seq, stored.message.clone())];
    let now = stored.message.timestamp;
    let snapshot = Snapshot::new(now, (now, now), saved).unwrap();
    store.save_snapshot(snapshot.clone()).await.unwrap();
    anna.sync().await;
    ben.sync().await;
    let there = ben.store(PLANS).await.read_snapshot(&snapshot.id).await.unwrap().unwrap();
    assert_eq!(there.messages.len(), 1);
    ben.store(PLANS).await.delete_snapshot(&snapshot.id).await.unwrap();
    ben.sync().await;
    anna.sync().await;
    assert!(store.read_snapshot(&snapshot.id).await.unwrap().is_none());
}

#[tokio::test]
async fn an_artifact_is_fetched_when_somebody_asks_for_it_and_deleted_with_its_pieces() {
    let house = House::new().await;
    let anna = house.anna().await;
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    let bytes: Vec<u8> = (0..20_u32 << 20).map(|n| (n % 251) as u8).collect();
    let new = NewArtifact::new(ArtifactKind::File, "map.png");
    let content = std::io::Cursor::new(bytes.clone());
    let added = anna.store(PLANS).await.add_artifact(new, Box::new(content)).await.unwrap();
    let id = added.artifact.id.clone();
    anna.sync().await;
    ben.sync().await;
    assert!(ben.store(PLANS).await.open_artifact(&id).await.unwrap().is_none());
    assert_eq!(ben.teams.status().await.unwrap()[0].conversations[0].unfetched, 1);
    let fetched = ben.teams.fetch_artifact(&scope(PLANS), &id).await.unwrap();
    assert_eq!(fetched, FetchedArtifact::Fetched);
    let mut read = Vec::new();
    let contents = ben.store(PLANS).await.open_artifact(&id).await.unwrap();
    std::io::Read::read_to_end(&mut contents.unwrap(), &mut read).unwrap();
    assert!(read == bytes);
    assert_eq!(ben.sync().await, Default::default());
    let before = house.objects.objects().len();
    assert_eq!(before, 3);
    ben.store(PLANS).await.delete_artifacts(std::slice::from_ref(&id)).await.unwrap();
    ben.sync().await;
    anna.sync().await;
    assert!(anna.store(PLANS).await.open_artifact(&id).await.unwrap().is_none());
    assert_eq!(house.objects.objects().len(), 0);
    assert_eq!(
        ben.teams.fetch_artifact(&scope(PLANS), &id).await.unwrap(),
        FetchedArtifact::Unknown
    );
}

#[tokio::test]
async fn many_messages_and_forgettings_take_several_requests() {
    let house = House::new().await;
    let anna = house.anna().await;
    let now = anna.home.clock.now().timestamp();
    use sottovoce::{ChatMessage, ChatRole, Clock};
    let many: Vec<ChatMessage> =
        (0..2_500).map(|n| ChatMessage::at(ChatRole::User, format!("word {n}"), now)).collect();
    anna.store(PLANS).await.append_all(many).await.unwrap();
    assert_eq!(anna.sync().await.published, 2_500);
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    assert_eq!(ben.holds(PLANS).await.len(), 2_501);
    ben.store(PLANS).await.forget(&[2..=2_400]).await.unwrap();
    ben.sync().await;
    anna.sync().await;
    assert_eq!(anna.words(PLANS).await, ben.words(PLANS).await);
    assert_eq!(anna.holds(PLANS).await.len(), 102);
    let carl = house.guest(&anna, "Carl", Level::Read).await;
    assert_eq!(carl.holds(PLANS).await.len(), 102);
}

#[tokio::test]
async fn only_named_conversations_are_shared_and_no_other_one_leaves_the_device() {
    let house = House::new().await;
    let anna = house.anna().await;
    anna.says("default", "private").await;
    anna.says("dm/42", "private too").await;
    anna.says("named/diary", "my diary").await;
    for private in ["default", "dm/42"] {
        assert!(anna.teams.share(None, &scope(private)).await.is_err(), "{private}");
    }
    assert_eq!(anna.sync().await.published, 0);
    let ben = house.guest(&anna, "Ben", Level::Manage).await;
    assert_eq!(ben.words(PLANS).await, ["We meet on Monday"]);
    assert_eq!(ben.words("named/diary").await, [""; 0]);
}

#[tokio::test]
async fn if_nothing_is_new_one_request_asks_for_all_conversations() {
    let house = House::new().await;
    let anna = house.anna().await;
    anna.says("named/budget", "400").await;
    anna.teams.share(None, &scope("named/budget")).await.unwrap();
    let ben = house.guest(&anna, "Ben", Level::Write).await;
    for person in [&anna, &ben] {
        person.sync().await;
        house.proxy.asked();
        assert_eq!(person.sync().await, Default::default());
        assert_eq!(house.proxy.asked().len(), 1, "{}", person.name);
    }
}
