//! Devices that exchange messages, forgettings and copies.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sottovoce::exchange::{Exchange, Incoming, Received};
use sottovoce::import::metadata::IMPORTED_FROM;
use sottovoce::import::{ImportedMessage, ImportedMessages};
use sottovoce::store::{RestoreThreads, Retention, SavedMessage, Snapshot};
use sottovoce::{
    ChatMessage, ChatRole, ConversationStore, EncryptionKey, Error, ManualClock, Scope,
    StoreOptions,
};
use tempfile::{TempDir, tempdir};

use crate::common::{block_on, key, options, records, texts};

pub(crate) fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(crate) fn clock(at: &str) -> Arc<ManualClock> {
    Arc::new(ManualClock::at_utc(time(at)))
}

/// A device of its own, whose clock shows that time.
pub(crate) struct Device {
    pub(crate) folder: TempDir,
    pub(crate) clock: Arc<ManualClock>,
}

impl Device {
    pub(crate) fn at(now: &str) -> Self {
        Self { folder: tempdir().unwrap(), clock: clock(now) }
    }

    pub(crate) fn new() -> Self {
        Self::at("2025-08-25T16:00:00Z")
    }

    pub(crate) fn options(&self) -> StoreOptions {
        options().clock(self.clock.clone())
    }

    pub(crate) async fn open(&self) -> Exchange {
        Exchange::new(self.options().open(self.folder.path()).await.unwrap())
    }
}

pub(crate) fn said(minute: u32, text: &str) -> ChatMessage {
    let at = time("2025-08-24T10:00:00Z");
    let at = at.checked_add(jiff::SignedDuration::from_mins(minute.into())).unwrap();
    ChatMessage::at(ChatRole::User, text, at)
}

/// Everything that a device has.
pub(crate) async fn all(from: &Exchange) -> Incoming {
    let mut incoming = Incoming {
        forgotten: from.forgotten().await.unwrap(),
        settings: from.settings().await.unwrap().into_iter().map(|(k, v)| (k, Some(v))).collect(),
        ..Incoming::default()
    };
    let mut after = 0;
    loop {
        let stretch = from.messages(after).await.unwrap();
        incoming.messages.extend(stretch.messages.into_iter().map(|shared| shared.message));
        if stretch.read_to >= stretch.last_seq {
            break;
        }
        after = stretch.read_to;
    }
    let snapshots = from.snapshots().await.unwrap().into_iter();
    incoming.snapshots = snapshots.map(|(id, snapshot)| (id, Some(snapshot))).collect();
    incoming
}

pub(crate) async fn send(from: &Exchange, to: &Exchange) -> Received {
    to.receive(all(from).await).await.unwrap()
}

pub(crate) async fn words(exchange: &Exchange) -> Vec<String> {
    let read = exchange.store().read_tail(1000).await.unwrap();
    texts(&read).into_iter().map(str::to_owned).collect()
}

async fn sound(exchange: &Exchange) {
    let report = exchange.store().verify(|_| {}).await.unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

#[test]
fn what_came_from_a_device_and_goes_back_to_it_is_there_once_and_in_the_order_of_time() {
    let (one, two) = (Device::new(), Device::new());
    block_on(async {
        let (a, b) = (one.open().await, two.open().await);
        for (minute, text) in [(1, "a1"), (3, "a2"), (5, "a3")] {
            a.store().append_message(said(minute, text)).await.unwrap();
        }
        for (minute, text) in [(2, "b1"), (4, "b2")] {
            b.store().append_message(said(minute, text)).await.unwrap();
        }
        assert_eq!(send(&a, &b).await.taken, 3);
        let back = send(&b, &a).await;
        assert_eq!((back.taken, back.already_there), (2, 3));
        for exchange in [&a, &b] {
            assert_eq!(words(exchange).await, ["a1", "b1", "a2", "b2", "a3"]);
            sound(exchange).await;
        }
        let before = (a.position().await.unwrap(), b.position().await.unwrap());
        for _ in 0..2 {
            assert_eq!((send(&a, &b).await.taken, send(&b, &a).await.taken), (0, 0));
        }
        assert_eq!((a.position().await.unwrap(), b.position().await.unwrap()), before);
        // Each says the same of every message, whoever has it from whom.
        let said = |incoming: Incoming| {
            let messages = incoming.messages.into_iter();
            let mut said: Vec<_> = messages.map(|m| (m.origin, m.at, m.message)).collect();
            said.sort_by_key(|(origin, ..)| *origin);
            said
        };
        assert_eq!(said(all(&a).await), said(all(&b).await));
        let received = b.messages(0).await.unwrap().messages;
        assert_eq!(received.iter().filter(|shared| shared.is_received).count(), 3);
    });
}

#[test]
fn what_one_device_forgets_leaves_the_others_with_their_snapshots_words() {
    let (one, two) = (Device::new(), Device::new());
    block_on(async {
        let (a, b) = (one.open().await, two.open().await);
        for minute in 1..=3 {
            a.store().append_message(said(minute, &format!("secret {minute}"))).await.unwrap();
        }
        let saved = a.store().read_seqs(2..=3).await.unwrap().messages;
        let saved = saved.iter().map(|m| SavedMessage::new(m.seq, m.message.clone())).collect();
        let window = (time("2025-08-24T10:00:00Z"), time("2025-08-24T11:00:00Z"));
        let mut snapshot = Snapshot::new(time("2025-08-25T00:00:00Z"), window, saved).unwrap();
        snapshot.summary = "All about the secret.".to_owned();
        a.store().save_snapshot(snapshot).await.unwrap();
        assert_eq!(send(&a, &b).await.taken, 3);
        assert_eq!(a.snapshots().await.unwrap(), b.snapshots().await.unwrap());

        // The one that has it from the other forgets it.
        let number = b.store().read_tail(9).await.unwrap().messages[1].seq;
        b.store().forget(&[number..=number]).await.unwrap();
        let received = send(&b, &a).await;
        assert_eq!((received.removed, received.taken), (1, 0));
        for exchange in [&a, &b] {
            assert_eq!(words(exchange).await, ["secret 1", "secret 3"]);
            let snapshots = exchange.snapshots().await.unwrap();
            let kept = snapshots.values().next().unwrap();
            assert_eq!(kept.messages.len(), 1);
            assert!(!kept.summary.contains("secret"), "{}", kept.summary);
            sound(exchange).await;
        }
        assert_eq!(a.forgotten().await.unwrap(), b.forgotten().await.unwrap());
        let before = a.position().await.unwrap();
        assert_eq!(send(&b, &a).await.removed, 0);
        assert_eq!(a.position().await.unwrap(), before);
    });
}

#[test]
fn a_message_that_arrives_after_its_forgetting_stays_away_for_good() {
    let (one, two) = (Device::new(), Device::new());
    block_on(async {
        let (a, b) = (one.open().await, two.open().await);
        for minute in 1..=2 {
            a.store().append_message(said(minute, &format!("a{minute}"))).await.unwrap();
        }
        let messages = all(&a).await.messages;
        let forgotten = BTreeSet::from([messages[0].origin]);
        let first = Incoming { forgotten: forgotten.clone(), ..Incoming::default() };
        assert_eq!(b.receive(first).await.unwrap(), Received::default());
        assert_eq!(b.forgotten().await.unwrap(), forgotten);
        let b = two.open().await;
        let received = b.receive(Incoming { messages, ..Incoming::default() }).await.unwrap();
        assert_eq!((received.taken, received.forgotten), (1, 1));
        assert_eq!(words(&b).await, ["a2"]);
        sound(&b).await;
    });
}

fn imported(text: &str) -> ImportedMessages {
    let mut read = ImportedMessages::new("chatgpt");
    for (minute, word) in text.split(' ').enumerate() {
        let minute = u32::try_from(minute).unwrap();
        read.push(word, ImportedMessage::new("chatgpt", word, "log", said(minute, word)));
    }
    read
}

#[test]
fn an_import_is_the_same_messages_on_every_device_and_says_everywhere_what_it_was() {
    let (one, two, three) = (Device::new(), Device::new(), Device::new());
    block_on(async {
        let (a, b, c) = (one.open().await, two.open().await, three.open().await);
        imported("x y z").import_into(a.store(), |_| {}).await.unwrap();
        assert_eq!(send(&a, &b).await.taken, 3);
        assert_eq!(send(&b, &c).await.taken, 3);
        let mark =
            |incoming: &Incoming| incoming.messages[0].message.metadata[IMPORTED_FROM].clone();
        let marks =
            BTreeSet::from([mark(&all(&a).await), mark(&all(&b).await), mark(&all(&c).await)]);
        assert_eq!(marks.len(), 1);
        assert!(marks.first().unwrap().starts_with("chatgpt:"));
        let here =
            &c.store().read_tail(1).await.unwrap().messages[0].message.metadata[IMPORTED_FROM];
        assert!(here.starts_with("received/chatgpt:"), "{here}");
        // The same import adds nothing where the messages have come from elsewhere.
        let again = imported("x y z new").import_into(c.store(), |_| {}).await.unwrap();
        assert_eq!((again.taken, again.already_there), (1, 3));
    });
}

#[test]
fn what_limits_remove_is_no_forgetting_and_does_not_come_back() {
    let (one, two) = (Device::new(), Device::new());
    block_on(async {
        let (a, b) = (one.open().await, two.open().await);
        let words: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        imported(&words.join(" ")).import_into(a.store(), |_| {}).await.unwrap();
        send(&a, &b).await;
        let few = Retention::FOREVER.max_messages(10);
        let tight = b.store().change_profile(Box::new(move |p| p.retention = Some(few)));
        tight.await.unwrap();
        let stretch = b.messages(0).await.unwrap();
        assert_eq!((stretch.messages.len(), stretch.read_to), (10, stretch.last_seq));
        b.store().cleanup().await.unwrap();
        assert_eq!(b.forgotten().await.unwrap(), BTreeSet::new());
        let messages = all(&a).await.messages;
        let again = b.receive(Incoming { messages, ..Incoming::default() }).await.unwrap();
        assert_eq!((again.taken, again.already_there, again.forgotten), (0, 10, 30));
        // A person who forgets them elsewhere is heard all the same.
        a.store().forget(&[1..=1]).await.unwrap();
        let forgotten = a.forgotten().await.unwrap();
        b.receive(Incoming { forgotten: forgotten.clone(), ..Incoming::default() }).await.unwrap();
        assert_eq!(b.forgotten().await.unwrap(), forgotten);
        sound(&b).await;
    });
}

#[test]
fn restored_copies_point_to_their_originals_whatever_numbers_these_have() {
    let (one, two) = (Device::new(), Device::new());
    block_on(async {
        let (a, b) = (one.open().await, two.open().await);
        for minute in 0..7 {
            b.store().append_message(said(minute, &format!("b{minute}"))).await.unwrap();
        }
        let original = a.store().append_message(said(1, "original")).await.unwrap();
        let saved = vec![SavedMessage::new(original.seq, original.message.clone())];
        let window = (time("2025-08-24T10:00:00Z"), time("2025-08-24T11:00:00Z"));
        let snapshot = Snapshot::new(time("2025-08-25T00:00:00Z"), window, saved).unwrap();
        let id = snapshot.id.clone();
        a.store().save_snapshot(snapshot).await.unwrap();
        let now = time("2025-08-25T12:00:00Z").to_zoned(TimeZone::UTC);
        let since = time("2025-08-25T11:00:00Z");
        a.store().restore(&id, since, RestoreThreads::default(), now).await.unwrap();
        assert_eq!(words(&a).await, ["original", "original"]);
        assert_eq!(send(&a, &b).await.taken, 2);
        let read = b.store().read_tail(99).await.unwrap().messages;
        let mut same = read.iter().filter(|stored| stored.message.content == "original");
        let (original, copy) = (same.next().unwrap(), same.next().unwrap());
        assert_eq!(copy.message.restored_from(), Some((id.as_str(), original.seq)));
        assert_eq!(send(&b, &a).await.already_there, 2);
        assert_eq!(send(&a, &b).await.taken, 0);
        // So they are forgotten together.
        b.store().forget(&[original.seq..=original.seq]).await.unwrap();
        assert!(!words(&b).await.contains(&"original".to_owned()));
        send(&b, &a).await;
        assert!(!words(&a).await.contains(&"original".to_owned()));
        assert!(a.snapshots().await.unwrap().is_empty());
    });
}

#[test]
fn a_message_from_the_future_keeps_its_time_and_moves_nothing_that_is_said_after_it() {
    let (wrong, right) = (Device::at("2035-01-01T00:00:00Z"), Device::new());
    block_on(async {
        let (a, b) = (wrong.open().await, right.open().await);
        let future = ChatMessage::at(ChatRole::User, "future", time("2035-01-01T00:00:00Z"));
        a.store().append_message(future).await.unwrap();
        a.store().append_message(said(1, "after it")).await.unwrap();
        assert_eq!(send(&a, &b).await.taken, 2);
        let now = ChatMessage::at(ChatRole::User, "now", time("2025-08-25T16:00:00Z"));
        let now = b.store().append_message(now).await.unwrap();
        assert!(now.ordered_at() < time("2025-08-25T16:01:00Z"), "{}", now.ordered_at());
        assert_eq!(words(&b).await, ["future", "after it", "now"]);
        let read = b.store().read_tail(9).await.unwrap().messages;
        assert_eq!(read[0].message.timestamp, time("2035-01-01T00:00:00Z"));
        assert_eq!(send(&b, &a).await.taken, 1);
        assert_eq!(send(&a, &b).await.taken, 0);
    });
}

#[test]
fn what_is_received_is_neither_masked_nor_measured_again() {
    let (one, two) = (Device::new(), Device::new());
    block_on(async {
        let a = one.open().await;
        let text = format!("write to jo@example.org {}", "x".repeat(5000));
        a.store().append_message(said(1, &text)).await.unwrap();
        let options = two
            .options()
            .max_message_bytes(1000)
            .redactor(Arc::new(sottovoce::ContactRedactor::new().unwrap()));
        let b = Exchange::new(options.open(two.folder.path()).await.unwrap());
        assert_eq!(send(&a, &b).await.taken, 1);
        assert_eq!(words(&b).await, [text]);
    });
}

#[test]
fn two_handles_and_a_writer_at_once_store_each_message_once() {
    let (one, two) = (Device::new(), Device::new());
    block_on(async {
        let a = one.open().await;
        let messages = (0..300).map(|n| said(n, &format!("a{n}"))).collect();
        a.store().append_all(messages).await.unwrap();
        let incoming = all(&a).await;
        let (first, second, writer) = (two.open().await, two.open().await, two.open().await);
        let appends = async {
            for minute in 0..20 {
                writer.store().append_message(said(minute, "own")).await.unwrap();
            }
        };
        let (x, y, ()) =
            tokio::join!(first.receive(incoming.clone()), second.receive(incoming), appends);
        assert_eq!(x.unwrap().taken + y.unwrap().taken, 300);
        assert_eq!(words(&two.open().await).await.len(), 320);
        sound(&two.open().await).await;
    });
}

#[test]
fn a_damaged_record_is_passed_over_and_one_under_another_key_is_an_error() {
    let one = Device::new();
    block_on(async {
        let a = one.open().await;
        for minute in 1..=3 {
            a.store().append_message(said(minute, &format!("a{minute}"))).await.unwrap();
        }
        let whole = a.message_origin(2).await.unwrap();
        assert!(whole.is_some() && a.message_origin(4).await.unwrap().is_none());
        let second = records(one.folder.path())[1].clone();
        let bytes = std::fs::read(&second).unwrap();
        std::fs::write(&second, b"damaged").unwrap();
        let read = one.open().await.messages(0).await.unwrap();
        assert_eq!(read.messages.iter().map(|m| m.seq).collect::<Vec<_>>(), [1, 3]);
        let line = String::from_utf8(bytes).unwrap();
        let kid = line.find(r#""kid":""#).unwrap() + 7;
        let other = format!("{}{}{}", &line[..kid], "0".repeat(32), &line[kid + 32..]);
        std::fs::write(&second, other).unwrap();
        let read = one.open().await.messages(0).await;
        assert!(matches!(read, Err(Error::WrongKey { .. })), "{read:?}");
        std::fs::write(&second, line).unwrap();
        assert_eq!(one.open().await.message_origin(2).await.unwrap(), whole);
    });
}

#[test]
fn a_conversation_that_was_forgotten_and_removed_is_known_to_be() {
    let one = Device::new();
    block_on(async {
        let scope: Scope = "named/kitchen".parse().unwrap();
        let options = || one.options().scope(scope.clone());
        let kitchen = Exchange::new(options().open(one.folder.path()).await.unwrap());
        kitchen.store().append_message(said(1, "secret")).await.unwrap();
        let origin = kitchen.message_origin(1).await.unwrap().unwrap();
        let messages = all(&kitchen).await.messages;
        let root = one.open().await;
        assert_eq!(root.removed_at(&scope).await.unwrap(), None);
        kitchen.store().forget_all().await.unwrap();
        assert!(kitchen.store().clone().remove_forgotten().await.unwrap());
        assert!(root.removed_at(&scope).await.unwrap().is_some());
        assert_eq!(root.forgotten_with(&scope).await.unwrap(), BTreeSet::from([origin]));
        assert!(root.forgotten().await.unwrap().is_empty());
        // Nor does it come back from a device that has not heard of it.
        let kitchen = Exchange::new(options().open(one.folder.path()).await.unwrap());
        let received = kitchen.receive(Incoming { messages, ..Incoming::default() }).await.unwrap();
        assert_eq!((received.taken, received.forgotten), (0, 1));
    });
}

#[test]
fn nothing_says_a_word_in_its_debug_form() {
    let one = Device::new();
    block_on(async {
        let a = one.open().await;
        a.store().append_message(said(1, "secret")).await.unwrap();
        let rename = |p: &mut sottovoce::store::Profile| p.rename(Some("secret".to_owned()));
        a.store().change_profile(Box::new(rename)).await.unwrap();
        let incoming = all(&a).await;
        let stretch = a.messages(0).await.unwrap();
        let shown = format!("{a:?} {incoming:?} {stretch:?}");
        assert!(!shown.contains("secret"), "{shown}");
        let json = serde_json::to_string(&incoming.messages[0]).unwrap();
        let back: sottovoce::exchange::SharedMessage = serde_json::from_str(&json).unwrap();
        assert_eq!(back, incoming.messages[0]);
        assert!(json.starts_with(&format!(r#"{{"origin":"{}""#, back.origin)), "{json}");
    });
}

/// The key of the tests, and another one.
pub(crate) fn keys() -> [EncryptionKey; 2] {
    let other = EncryptionKey::from_secret("another secret of the tests, long enough");
    [key(), other.unwrap()]
}

pub(crate) fn length(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}
