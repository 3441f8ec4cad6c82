//! Devices that exchange settings, clears and artifacts, and what a device keeps of its sync.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::collections::BTreeMap;
use std::io::Read;

use jiff::Timestamp;
use serde_json::{Value, json};
use sottovoce::admin::Rekey;
use sottovoce::exchange::{
    Exchange, Incoming, ObjectKind, Sharing, SpaceKey, read_state, try_lock, write_state,
};
use sottovoce::export::{ExportForm, ExportRange, Exporter};
use sottovoce::persona::{Persona, Preset};
use sottovoce::store::{ArtifactKind, ArtifactStore, Document, NewArtifact, Profile, Retention};
use sottovoce::{ChatMessage, ChatRole, ConversationStore, Error, Scope, StoreOptions};

use crate::common::block_on;
use crate::exchange::{Device, all, keys, length, said, send, time, words};

async fn change(exchange: &Exchange, change: impl Fn(&mut Profile) + Send + 'static) {
    exchange.store().change_profile(Box::new(change)).await.unwrap();
}

fn only(name: &str, value: Option<Value>) -> Incoming {
    Incoming { settings: BTreeMap::from([(name.to_owned(), value)]), ..Incoming::default() }
}

#[test]
fn settings_arrive_as_they_were_and_null_takes_each_one_back() {
    let (one, two) = (Device::new(), Device::new());
    block_on(async {
        let (a, b) = (one.open().await, two.open().await);
        change(&a, |profile| {
            profile.rename(Some("Kitchen".to_owned()));
            profile.tags = ["food".to_owned()].into();
            profile.metadata = [("colour".to_owned(), "red".to_owned())].into();
            profile.created_at = Some(time("2025-01-01T00:00:00Z"));
            profile.retention = Some(Retention::FOREVER.max_messages(500));
            profile.rolling_window = Some(true);
            profile.window_seconds = std::num::NonZeroU64::new(60);
        })
        .await;
        let shared = a.settings().await.unwrap();
        let names: Vec<&str> = shared.keys().map(String::as_str).collect();
        let expected = [
            "createdAt",
            "metadata",
            "retention",
            "rollingWindow",
            "tags",
            "title",
            "windowSeconds",
        ];
        assert_eq!(names, expected);
        assert!(send(&a, &b).await.left_out.is_empty());
        assert_eq!(b.settings().await.unwrap(), shared);
        let before = b.position().await.unwrap();
        send(&a, &b).await;
        assert_eq!(b.position().await.unwrap(), before);
        for name in shared.keys() {
            b.receive(only(name, None)).await.unwrap();
            assert!(!b.settings().await.unwrap().contains_key(name), "{name}");
        }
        assert!(b.settings().await.unwrap().is_empty());
    });
}

#[test]
fn a_setting_that_is_none_or_belongs_elsewhere_is_left_out_and_the_others_apply() {
    let two = Device::new();
    block_on(async {
        let b = two.open().await;
        let settings = [
            ("title", json!("Kitchen")),
            ("tags", json!("food")),
            ("windowSeconds", json!(0)),
            ("persona", json!({"persona": {}})),
            ("cleared", json!({"at": "yesterday"})),
            ("preset/x", json!({"name": ""})),
            ("fromTheFuture", json!(1)),
        ];
        let names = settings.iter().skip(1).map(|(name, _)| (*name).to_owned()).collect();
        let settings = settings.map(|(name, value)| (name.to_owned(), Some(value))).into();
        let received = b.receive(Incoming { settings, ..Incoming::default() }).await.unwrap();
        assert_eq!(received.left_out, names);
        let here = b.settings().await.unwrap();
        assert_eq!(here, BTreeMap::from([("title".to_owned(), json!("Kitchen"))]));
        let scope: Scope = "named/kitchen".parse().unwrap();
        let named = two.options().scope(scope).open(two.folder.path()).await.unwrap();
        let preset = serde_json::to_value(Preset::new("DJ", Persona::new("Sing."))).unwrap();
        let given = || only("preset/dj", Some(preset.clone()));
        let received = Exchange::new(named).receive(given()).await.unwrap();
        assert_eq!(received.left_out.len(), 1);
        assert!(b.receive(given()).await.unwrap().left_out.is_empty());
        assert_eq!(b.settings().await.unwrap()["preset/dj"], preset);
        b.receive(only("preset/dj", None)).await.unwrap();
        assert!(!b.settings().await.unwrap().contains_key("preset/dj"));
    });
}

#[test]
fn wider_limits_of_another_device_show_nothing_again_and_tighter_ones_are_no_forgetting() {
    let two = Device::new();
    block_on(async {
        let b = two.open().await;
        for minute in 0..6 {
            b.store().append_message(said(minute, &minute.to_string())).await.unwrap();
        }
        let limit = |most| serde_json::to_value(Retention::FOREVER.max_messages(most)).unwrap();
        b.receive(only("retention", Some(limit(2)))).await.unwrap();
        assert_eq!(words(&b).await, ["4", "5"]);
        b.receive(only("retention", Some(limit(100)))).await.unwrap();
        assert_eq!(words(&b).await, ["4", "5"]);
        assert!(b.forgotten().await.unwrap().is_empty());
        assert_eq!(b.settings().await.unwrap()["retention"], limit(100));
    });
}

fn at(minute: &str) -> Timestamp {
    time(&format!("2025-08-24T{minute}:00Z"))
}

async fn context(exchange: &Exchange) -> Vec<String> {
    let profile = exchange.store().profile().await.unwrap();
    let read = exchange.store().read_tail(99).await.unwrap().messages;
    let shown = read.iter().filter(|stored| !profile.hides(stored));
    shown.map(|stored| stored.message.content.clone()).collect()
}

fn cleared(at: Timestamp) -> Incoming {
    only("cleared", Some(json!({"at": at})))
}

#[test]
fn a_clear_hides_what_was_said_before_it_on_every_device_and_nothing_after_it() {
    let (one, two) = (Device::new(), Device::new());
    block_on(async {
        let (a, b) = (one.open().await, two.open().await);
        for minute in [1, 3, 5] {
            b.store().append_message(said(minute, &format!("b{minute}"))).await.unwrap();
        }
        for minute in [2, 4] {
            a.store().append_message(said(minute, &format!("a{minute}"))).await.unwrap();
        }
        send(&a, &b).await;
        b.receive(cleared(at("10:03"))).await.unwrap();
        assert_eq!(context(&b).await, ["a4", "b5"]);
        let before = b.position().await.unwrap();
        b.receive(cleared(at("10:03"))).await.unwrap();
        assert_eq!(b.position().await.unwrap(), before);
        // Whoever gives less than is cleared here has found out that it is newer.
        b.receive(cleared(at("10:01"))).await.unwrap();
        assert_eq!(context(&b).await, ["a2", "b3", "a4", "b5"]);
        b.receive(cleared(at("10:03"))).await.unwrap();
        // What comes later, but was said before, is hidden as well.
        a.store().append_message(said(3, "a3")).await.unwrap();
        send(&a, &b).await;
        assert_eq!(context(&b).await, ["a4", "b5"]);
        assert_eq!(b.settings().await.unwrap()["cleared"], json!({"at": at("10:03")}));
        // A second clear, which is undone; and null.
        b.receive(cleared(at("10:04"))).await.unwrap();
        assert_eq!(context(&b).await, ["b5"]);
        b.receive(cleared(at("10:03"))).await.unwrap();
        assert_eq!(context(&b).await, ["a4", "b5"]);
        b.receive(only("cleared", None)).await.unwrap();
        assert_eq!(context(&b).await.len(), 6);
        assert!(!b.settings().await.unwrap().contains_key("cleared"));
    });
}

#[test]
fn a_clear_from_a_wrong_clock_hides_at_most_what_has_been_said_so_far() {
    let two = Device::new();
    block_on(async {
        let b = two.open().await;
        b.store().append_message(said(1, "b1")).await.unwrap();
        b.receive(cleared(time("1970-01-01T00:00:00Z"))).await.unwrap();
        assert_eq!(context(&b).await, ["b1"]);
        b.receive(cleared(time("2035-01-01T00:00:00Z"))).await.unwrap();
        assert_eq!(context(&b).await, Vec::<String>::new());
        let now = b.settings().await.unwrap()["cleared"].clone();
        assert_eq!(now, json!({"at": "2025-08-25T16:00:00Z"}));
        two.clock.advance(jiff::SignedDuration::from_hours(1));
        let later = ChatMessage::at(ChatRole::User, "later", time("2025-08-25T17:00:00Z"));
        b.store().append_message(later).await.unwrap();
        assert_eq!(context(&b).await, ["later"]);
    });
}

#[test]
fn artifacts_keep_their_ids_and_what_was_deleted_stays_deleted() {
    let (one, two) = (Device::new(), Device::new());
    block_on(async {
        let (a, b) = (one.open().await, two.open().await);
        // The same bytes under another id must not take its place: messages refer to both.
        let add = async |to: &Exchange, bytes: &'static [u8]| {
            let new = NewArtifact::new(ArtifactKind::File, "notes.txt");
            to.store().add_artifact(new, Box::new(bytes)).await.unwrap().artifact
        };
        let (first, second) = (add(&a, b"words").await, add(&a, b"more words").await);
        add(&b, b"words").await;
        for _ in 0..2 {
            b.receive_artifact(first.clone(), &b"words"[..]).await.unwrap();
        }
        let mut contents = b.store().open_artifact(&first.id).await.unwrap().unwrap();
        let mut text = String::new();
        contents.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), contents.artifact()), ("words", &first));
        let there = b.artifacts().await.unwrap();
        assert_eq!((there.len(), there[&first.id].as_ref()), (2, Some(&first)));
        // Contents that were cut or changed are none.
        let cut = b.receive_artifact(second.clone(), &b"more wor"[..]).await;
        assert!(matches!(cut, Err(Error::Io { .. })), "{cut:?}");
        assert_eq!(b.artifacts().await.unwrap().len(), 2);
        // A deletion is heard whether or not the artifact is here.
        let ids = [first.id.clone(), second.id.clone()];
        b.delete_artifacts(&ids).await.unwrap();
        let before = b.position().await.unwrap();
        b.delete_artifacts(&ids).await.unwrap();
        b.receive_artifact(first.clone(), &b"words"[..]).await.unwrap();
        b.receive_artifact(second.clone(), &b"more words"[..]).await.unwrap();
        assert_eq!(b.position().await.unwrap(), before);
        let there = b.artifacts().await.unwrap();
        assert_eq!((&there[&first.id], &there[&second.id]), (&None, &None));
        assert!(b.store().verify(|_| {}).await.unwrap().is_sound());
    });
}

#[test]
fn the_state_of_sync_may_be_long_outlives_forgetting_and_a_change_of_keys_and_is_in_no_export() {
    let one = Device::new();
    block_on(async {
        let a = one.open().await;
        assert!(read_state(a.store(), Sharing::Devices).await.unwrap().is_none());
        a.store().append_message(said(1, "a1")).await.unwrap();
        // Longer than an envelope may be.
        let long = vec![b'x'; 3 << 19];
        for state in [b"the state of sync".as_slice(), &long, b"short again", &long] {
            write_state(a.store(), Sharing::Devices, state).await.unwrap();
            assert!(*read_state(a.store(), Sharing::Devices).await.unwrap().unwrap() == state);
        }
        a.store().forget_all().await.unwrap();
        let refused = a.store().write_document(Document::Sync, b"x").await;
        assert!(matches!(refused, Err(Error::InvalidMessage { .. })));
        let export = one.folder.path().with_extension("json");
        let mut exporter = Exporter::to_file(ExportForm::Json, &export).unwrap();
        exporter.add(a.store(), ExportRange::default(), |_| {}).await.unwrap();
        exporter.finish().await.unwrap();
        assert!(length(&export) < 10_000);
        std::fs::remove_file(export).unwrap();
        let [from, to] = keys();
        let on = |_| std::ops::ControlFlow::Continue(());
        Rekey::new(from, to).run(one.folder.path(), on).await.unwrap();
        let [_, key] = keys();
        let store = StoreOptions::new(key).open(one.folder.path()).await.unwrap();
        assert!(*read_state(&store, Sharing::Devices).await.unwrap().unwrap() == long);
        assert!(store.verify(|_| {}).await.unwrap().is_sound());
        let scope: Scope = "named/kitchen".parse().unwrap();
        let [_, key] = keys();
        let named = StoreOptions::new(key).scope(scope).open(one.folder.path()).await.unwrap();
        assert!(matches!(
            write_state(&named, Sharing::Devices, b"x").await,
            Err(Error::OtherScope)
        ));
    });
}

#[test]
fn one_process_syncs_at_a_time_and_its_lock_is_no_finding() {
    let one = Device::new();
    block_on(async {
        let (a, other) = (one.open().await, one.open().await);
        a.store().append_message(said(1, "a1")).await.unwrap();
        let lock = try_lock(a.store(), Sharing::Devices).await.unwrap().unwrap();
        assert!(try_lock(other.store(), Sharing::Devices).await.unwrap().is_none());
        // Others go on writing.
        other.store().append_message(said(2, "a2")).await.unwrap();
        assert!(a.store().verify(|_| {}).await.unwrap().is_sound());
        drop(lock);
        assert!(try_lock(other.store(), Sharing::Devices).await.unwrap().is_some());
    });
}

#[test]
fn an_object_opens_in_its_own_space_device_kind_and_name_alone() {
    let (space, other) = ("0123456789abcdef".repeat(2), "f".repeat(32));
    let key = SpaceKey::new(&space, &[7; 32]).unwrap();
    let text = vec![b'w'; 200_000];
    let sealed = key.seal(ObjectKind::Segment, "device", "name", &text).unwrap();
    let open = |key: &SpaceKey, kind, device: &str, name: &str| {
        key.open(kind, device, name, &sealed).map(|text| text.to_vec())
    };
    assert_eq!(open(&key, ObjectKind::Segment, "device", "name"), Some(text));
    assert_eq!(open(&key, ObjectKind::Head, "device", "name"), None);
    assert_eq!(open(&key, ObjectKind::Segment, "another", "name"), None);
    assert_eq!(open(&key, ObjectKind::Segment, "device", "another"), None);
    for (space, bytes) in [(&other, [7; 32]), (&space, [8; 32])] {
        let key = SpaceKey::new(space, &bytes).unwrap();
        assert_eq!(open(&key, ObjectKind::Segment, "device", "name"), None);
    }
    for cut in [0, 1, 39, 40, 56, 65_536, sealed.len() - 1] {
        assert!(key.open(ObjectKind::Segment, "device", "name", &sealed[..cut]).is_none());
    }
    assert!(SpaceKey::new(&space.to_uppercase(), &[7; 32]).is_err());
    assert!(!format!("{key:?}").contains('7') || !format!("{key:?}").contains("[7"));
    let empty = key.seal(ObjectKind::Head, "d", "n", b"").unwrap();
    assert_eq!(key.open(ObjectKind::Head, "d", "n", &empty).unwrap().len(), 0);
}

#[test]
fn everything_at_once_is_the_same_as_one_after_the_other() {
    let (one, two, three) = (Device::new(), Device::new(), Device::new());
    block_on(async {
        let (a, b, c) = (one.open().await, two.open().await, three.open().await);
        for minute in 1..=4 {
            a.store().append_message(said(minute, &format!("a{minute}"))).await.unwrap();
        }
        let early = all(&a).await;
        a.store().forget(&[2..=2]).await.unwrap();
        change(&a, |profile| profile.rename(Some("Kitchen".to_owned()))).await;
        b.receive(early).await.unwrap();
        send(&a, &b).await;
        send(&a, &c).await;
        assert_eq!(words(&b).await, words(&c).await);
        assert_eq!(b.settings().await.unwrap(), c.settings().await.unwrap());
        assert_eq!(b.forgotten().await.unwrap(), c.forgotten().await.unwrap());
    });
}
