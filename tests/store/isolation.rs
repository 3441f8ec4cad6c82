//! Isolation: nothing leaks from one conversation into another, whatever the steps and their order.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::common::{block_on, key, records};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use sottovoce::admin::scopes;
use sottovoce::context::{ContextRequest, LastNContextProvider, RollingWindowProvider};
use sottovoce::prompt::EntryOutcome;
use sottovoce::store::{FindingKind, HiddenMessages, RestoreThreads, Retention};
use sottovoce::{
    ChatMessage, ChatRole, Clock, ContextProvider, Conversation, ConversationStore, Error,
    FileConversationStore, ManualClock, Scope, StoreOptions,
};

fn start() -> Timestamp {
    "2025-08-24T16:00:00Z".parse().unwrap()
}

fn guild(guild: &str, channel: &str, user: &str) -> Scope {
    let [guild, channel, user] = [guild, channel, user].map(str::to_owned);
    Scope::Guild { guild, channel, user }
}

fn dm(user: &str) -> Scope {
    Scope::Dm { user: user.into() }
}

async fn open(root: &Path, scope: &Scope, clock: &Arc<ManualClock>) -> FileConversationStore {
    let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
    StoreOptions::new(key())
        .scope(scope.clone())
        .clock(clock)
        .loose_files(4)
        .open(root)
        .await
        .unwrap()
}

fn user(words: &str, at: Timestamp) -> ChatMessage {
    ChatMessage::at(ChatRole::User, words, at)
}

async fn words(store: &FileConversationStore) -> Vec<String> {
    let reading = store.read_tail(usize::MAX).await.unwrap();
    assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
    reading.messages.iter().map(|stored| stored.message.content.clone()).collect()
}

/// The pairs of conversations for which isolation is promised: who speaks where.
fn pairs() -> [(&'static str, Scope, Scope); 8] {
    [
        ("two people in one channel", guild("1", "2", "a"), guild("1", "2", "b")),
        ("one person in two channels", guild("1", "2", "a"), guild("1", "3", "a")),
        ("a direct message and a channel", dm("a"), guild("1", "2", "a")),
        ("one person in two guilds", guild("1", "2", "a"), guild("2", "2", "a")),
        ("two people's direct messages", dm("a"), dm("b")),
        ("a direct message and a room of that name", dm("a"), Scope::Named { id: "a".into() }),
        ("ids that differ in letter case", dm("Ann"), dm("ann")),
        ("a person and the conversation of a single user", dm("default"), Scope::Default),
    ]
}

#[test]
fn who_speaks_in_one_place_is_not_heard_in_another() {
    let clock = Arc::new(ManualClock::at_utc(start()));
    for (what, one, other) in pairs() {
        let root = tempfile::tempdir().unwrap();
        block_on(async {
            let here = open(root.path(), &one, &clock).await;
            here.append_message(user("canary", start())).await.unwrap();
            let there = open(root.path(), &other, &clock).await;
            assert!(words(&there).await.is_empty(), "{what}");
            there.append_message(user("another", start())).await.unwrap();
            assert_eq!(words(&here).await, ["canary"], "{what}");
            assert_eq!(words(&there).await, ["another"], "{what}");
            for store in [&here, &there] {
                let shared: Arc<dyn ConversationStore> = Arc::new(store.clone());
                let mut request = ContextRequest::new(&shared, "x", 99);
                request.now = Some(start());
                let exact = LastNContextProvider::new();
                let blocks = LastNContextProvider::in_blocks();
                let window = RollingWindowProvider::new();
                for provider in [&exact as &dyn ContextProvider, &blocks, &window] {
                    let context = provider.get_context(&request).await.unwrap();
                    let scopes: BTreeSet<_> =
                        context.messages.iter().map(|m| m.scope().unwrap().to_string()).collect();
                    assert_eq!(scopes, BTreeSet::from([store.scope().to_string()]), "{what}");
                }
            }
            let mut listed = scopes(root.path()).unwrap();
            listed.sort();
            let mut expected = vec![one, other];
            expected.sort();
            assert_eq!(listed, expected);
        });
    }
}

#[test]
fn a_file_that_is_moved_to_another_conversation_does_not_open_there() {
    let clock = Arc::new(ManualClock::at_utc(start()));
    for (what, one, other) in pairs() {
        let root = tempfile::tempdir().unwrap();
        block_on(async {
            let here = open(root.path(), &one, &clock).await;
            here.append_message(user("canary", start())).await.unwrap();
            here.clear().await.unwrap();
            let there = open(root.path(), &other, &clock).await;
            there.append_message(user("another", start())).await.unwrap();
            there.clear().await.unwrap();
            let folder = |scope: &Scope| {
                scope
                    .folder()
                    .unwrap()
                    .iter()
                    .fold(root.path().to_owned(), |at, name| at.join(name))
            };
            let (from, to) = (folder(&one), folder(&other));
            let file = records(&from).remove(0);
            std::fs::copy(&file, to.join("20250824T170000000Z_0009_user.json")).unwrap();
            std::fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
            for name in ["profile", "head"] {
                std::fs::copy(from.join(name), to.join(name)).unwrap();
            }
            let there = open(root.path(), &other, &clock).await;
            let reading = there.read_tail(9).await.unwrap();
            assert!(
                reading.messages.iter().all(|stored| stored.message.content != "canary"),
                "{what}"
            );
            let report = there.verify(|_| {}).await.unwrap();
            assert!(!report.is_sound(), "{what}");
            assert!(report.findings.iter().any(|f| f.kind == FindingKind::Unopenable), "{what}");
        });
    }
}

#[test]
fn there_is_no_wider_conversation_to_fall_back_to() {
    let clock = Arc::new(ManualClock::at_utc(start()));
    let root = tempfile::tempdir().unwrap();
    block_on(async {
        for scope in [Scope::Default, guild("1", "2", "everyone"), Scope::Named { id: "1".into() }]
        {
            let store = open(root.path(), &scope, &clock).await;
            store.append_message(user("canary", start())).await.unwrap();
        }
        for scope in [guild("1", "2", "a"), guild("1", "9", "everyone"), dm("everyone")] {
            let store = open(root.path(), &scope, &clock).await;
            assert!(words(&store).await.is_empty());
            assert!(!store.stats().await.unwrap().exists);
        }
        assert_eq!(scopes(root.path()).unwrap().len(), 3, "looking makes no conversation");
    });
}

#[test]
fn no_words_that_are_said_clear_or_forget_anything() {
    let clock = Arc::new(ManualClock::at_utc(start()));
    let root = tempfile::tempdir().unwrap();
    block_on(async {
        let store = Arc::new(open(root.path(), &dm("42"), &clock).await);
        let builder = Conversation::builder(store.clone())
            .system("Be brief.")
            .history(LastNContextProvider::new());
        let conversation = builder.last_n(99).build();
        let phrases = [
            "My sister is called Siobhán",
            "reset",
            "start over",
            "forget everything",
            "Clear context.",
            "/context clear",
            "/clear-context",
            "delete all my messages",
            "new conversation",
        ];
        for phrase in phrases {
            conversation.prepare_turn(phrase).await.unwrap();
            conversation.store_reply("All right.").await.unwrap();
            clock.advance(SignedDuration::from_mins(1));
        }
        assert_eq!(words(&store).await.len(), phrases.len() * 2);
        assert_eq!(store.profile().await.unwrap().cleared, None);
        let (prompt, _) = conversation.prompt("What is she called?").await.unwrap();
        assert_eq!(prompt.context.len(), phrases.len() * 2);
        // Only the command clears.
        conversation.clear().await.unwrap();
        let (prompt, _) = conversation.prompt("What is she called?").await.unwrap();
        assert!(prompt.context.is_empty());
        assert_eq!(words(&store).await.len(), phrases.len() * 2);
    });
}

#[test]
fn an_agents_run_starts_clean_and_says_so_and_remembers_itself() {
    let clock = Arc::new(ManualClock::at_utc(start()));
    let root = tempfile::tempdir().unwrap();
    block_on(async {
        let store = Arc::new(open(root.path(), &dm("42"), &clock).await);
        let shared: Arc<dyn ConversationStore> = Arc::clone(&store) as _;
        let conversation = {
            let builder = Conversation::builder(store.clone())
                .system("Be brief.")
                .history(LastNContextProvider::new());
            builder.last_n(99).build()
        };
        conversation.prepare_turn("canary").await.unwrap();
        let run = conversation.clone().starting_clean().await.unwrap();
        let heard = run.prepare_turn("List the files").await.unwrap();
        assert_eq!(heard.receipt.starts_after, Some(1));
        assert!(heard.prompt.context.is_empty());
        run.store_reply("There are two.").await.unwrap();
        let (prompt, receipt) = run.prompt("Delete one").await.unwrap();
        assert_eq!(prompt.context.len(), 2, "its own turns it remembers");
        assert_eq!(receipt.starts_after, Some(1));
        let (prompt, receipt) = conversation.prompt("And here?").await.unwrap();
        assert_eq!((prompt.context.len(), receipt.starts_after), (3, None));
        // Another provider does not bring back earlier messages either.
        let everything = LastNContextProvider::new();
        let all = everything.get_context(&ContextRequest::new(&shared, "x", 99)).await.unwrap();
        let builder = Conversation::builder(store.clone())
            .system("")
            .context(Fixed(all.messages))
            .starts_after(1);
        let (prompt, receipt) = builder.last_n(9).build().prompt("x").await.unwrap();
        assert_eq!(prompt.context.len(), 2);
        assert_eq!(receipt.entries[0].outcome, EntryOutcome::BeforeStart);
    });
}

/// A provider that always returns the same messages.
struct Fixed(Vec<sottovoce::context::ContextMessage>);

#[async_trait::async_trait]
impl ContextProvider for Fixed {
    fn placement(&self) -> sottovoce::context::Placement {
        sottovoce::context::Placement::History
    }

    async fn get_context(
        &self,
        _: &ContextRequest<'_>,
    ) -> sottovoce::Result<sottovoce::context::Context> {
        Ok(sottovoce::context::Context::new(self.0.clone(), "always"))
    }
}

/// A step of a conversation.
#[derive(Debug, Clone)]
enum Step {
    Append(ChatRole),
    AppendMany(usize),
    Import(usize),
    Forget(u64),
    Clear,
    Keep(u32, u64),
    CleanUp,
    Wait(i64),
    Save,
    Restore,
    Reopen,
    Pack,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop_oneof![Just(ChatRole::User), Just(ChatRole::Assistant), Just(ChatRole::Tool)].prop_map(Step::Append),
        1 => (1usize..12).prop_map(Step::AppendMany),
        1 => (1usize..4).prop_map(Step::Import),
        2 => (1u64..20).prop_map(Step::Forget),
        1 => Just(Step::Clear),
        1 => (0u32..9, prop_oneof![Just(0u64), Just(50u64), Just(500u64)]).prop_map(|(most, ttl)| Step::Keep(most, ttl)),
        1 => Just(Step::CleanUp),
        2 => (1i64..100).prop_map(Step::Wait),
        1 => Just(Step::Save),
        1 => Just(Step::Restore),
        1 => Just(Step::Reopen),
        1 => Just(Step::Pack),
    ]
}

/// The expected state of a conversation.
#[derive(Default)]
struct Model {
    /// By time and number.
    messages: BTreeMap<(Timestamp, u64), (ChatRole, String)>,
    last_seq: u64,
    newest: Option<Timestamp>,
    retention: Retention,
    /// The window's texts at the last save, by number.
    saved: Option<(String, BTreeMap<u64, String>)>,
    /// The original of each copy.
    copies: BTreeMap<u64, u64>,
}

impl Model {
    fn has_expired(&self, now: Timestamp) -> bool {
        let last = self.messages.keys().next_back().map(|(at, _)| *at);
        let ttl = self.retention.ttl_seconds.map(|ttl| SignedDuration::from_secs(ttl.get() as i64));
        matches!((last, ttl), (Some(last), Some(ttl)) if last + ttl < now)
    }

    /// The messages to be read: the rule, implemented a second time.
    fn shown(&self, now: Timestamp) -> Vec<(u64, String)> {
        if self.has_expired(now) {
            return Vec::new();
        }
        let all: Vec<_> = self.messages.iter().collect();
        let most = self.retention.max_messages.map_or(usize::MAX, |most| most.get() as usize);
        let mut from = all.len().saturating_sub(most);
        if from > 0 {
            let roles: Vec<ChatRole> = all.iter().map(|(_, (role, _))| *role).collect();
            let first = |wanted: &dyn Fn(ChatRole) -> bool| {
                (from..roles.len()).find(|at| wanted(roles[*at]))
            };
            from = first(&|role| role == ChatRole::User)
                .or_else(|| first(&|role| role != ChatRole::Tool))
                .unwrap_or(all.len());
        }
        all[from..].iter().map(|((_, seq), (_, words))| (*seq, words.clone())).collect()
    }

    fn drop_hidden(&mut self, now: Timestamp) -> bool {
        let shown: BTreeSet<u64> = self.shown(now).into_iter().map(|(seq, _)| seq).collect();
        let before = self.messages.len();
        self.messages.retain(|(_, seq), _| shown.contains(seq));
        let dropped = self.messages.len() < before;
        self.last_seq += u64::from(dropped);
        dropped
    }

    /// An append deletes what a limit on the number hides once that is sixteen messages.
    fn trim(&mut self, now: Timestamp) {
        let hidden = self.messages.len() - self.shown(now).len();
        if self.retention.max_messages.is_some() && hidden >= 16 {
            self.drop_hidden(now);
        }
    }

    fn add(&mut self, role: ChatRole, words: String, at: Timestamp, own: bool) -> u64 {
        self.last_seq += 1;
        let newest = self.newest.unwrap_or(at);
        let at = if own { at } else { at.max(newest) };
        self.newest = Some(newest.max(at));
        self.messages.insert((at, self.last_seq), (role, words));
        self.last_seq
    }
}

const SCOPES: usize = 7;

fn scope(at: usize) -> Scope {
    [
        Scope::Default,
        dm("1"),
        dm("A"),
        dm("a"),
        guild("1", "1", "1"),
        guild("1", "2", "1"),
        Scope::Named { id: "1".into() },
    ][at]
        .clone()
}

async fn hold(steps: Vec<(usize, Step)>) {
    let root = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::at_utc(start()));
    let mut models: Vec<Model> = (0..SCOPES).map(|_| Model::default()).collect();
    let mut stores = Vec::new();
    for at in 0..SCOPES {
        stores.push(open(root.path(), &scope(at), &clock).await);
    }
    for (number, (at, step)) in steps.into_iter().enumerate() {
        let (model, now) = (&mut models[at], clock.now().timestamp());
        let say = |n: usize| format!("{}: {number}.{n}", scope(at));
        match step {
            Step::Append(role) => {
                if model.has_expired(now) {
                    model.drop_hidden(now);
                    resync(model, &stores[at]).await;
                }
                let message = ChatMessage::at(role, say(0), now);
                let stored = stores[at].append_message(message).await.unwrap();
                model.last_seq = stored.seq - 1;
                model.add(role, say(0), now, false);
                model.trim(now);
                resync(model, &stores[at]).await;
            }
            Step::AppendMany(n) => {
                if model.has_expired(now) {
                    model.drop_hidden(now);
                }
                let many = (0..n).map(|n| user(&say(n), now)).collect();
                let stored = stores[at].append_all(many).await.unwrap();
                model.last_seq = stored[0].seq - 1;
                for n in 0..n {
                    model.add(ChatRole::User, say(n), now, false);
                }
                model.trim(now);
                resync(model, &stores[at]).await;
            }
            Step::Import(n) => {
                if model.has_expired(now) {
                    model.drop_hidden(now);
                }
                let then = now - SignedDuration::from_secs(40);
                let many = (0..n).map(|n| user(&say(n), then)).collect();
                let stored = stores[at].import(many).await.unwrap();
                model.last_seq = stored[0].seq - 1;
                for n in 0..n {
                    model.add(ChatRole::User, say(n), then, true);
                }
                model.trim(now);
                resync(model, &stores[at]).await;
            }
            Step::Forget(seq) => {
                if seq <= model.last_seq {
                    model.drop_hidden(now);
                    stores[at].forget(&[seq..=seq]).await.unwrap();
                    let first = model.copies.get(&seq).copied().unwrap_or(seq);
                    let family: BTreeSet<u64> = model
                        .copies
                        .iter()
                        .filter(|(_, of)| **of == first)
                        .map(|(copy, _)| *copy)
                        .chain([seq])
                        .chain(model.copies.contains_key(&seq).then_some(first))
                        .collect();
                    model.messages.retain(|(_, seq), _| !family.contains(seq));
                    if let Some((_, saved)) = &mut model.saved {
                        saved.retain(|seq, _| {
                            let root = model.copies.get(seq).copied().unwrap_or(*seq);
                            !family.contains(seq) && !family.contains(&root)
                        });
                    }
                    resync(model, &stores[at]).await;
                }
            }
            Step::Clear => drop(stores[at].clear().await.unwrap()),
            Step::Keep(most, ttl) => {
                let retention = Retention::FOREVER.max_messages(most).ttl_seconds(ttl);
                let mut fate = HiddenMessages::Keep;
                if retention != model.retention {
                    model.drop_hidden(now);
                    fate = HiddenMessages::Delete;
                }
                let effect = stores[at].limits_effect(Some(retention)).await.unwrap();
                stores[at].change_limits(Some(retention), fate, &effect).await.unwrap();
                model.retention = retention;
                resync(model, &stores[at]).await;
            }
            Step::CleanUp => {
                stores[at].cleanup().await.unwrap();
                model.drop_hidden(now);
                resync(model, &stores[at]).await;
            }
            Step::Wait(seconds) => clock.advance(SignedDuration::from_secs(seconds)),
            Step::Save => {
                let shown = model.shown(now);
                let saved = stores[at].read_tail(usize::MAX).await.unwrap().messages;
                let saved = saved.iter().map(|stored| {
                    sottovoce::store::SavedMessage::new(stored.seq, stored.message.clone())
                });
                let snapshot =
                    sottovoce::store::Snapshot::new(now, (start(), now), saved.collect()).unwrap();
                if !shown.is_empty() {
                    model.saved = Some((snapshot.id.clone(), shown.into_iter().collect()));
                    stores[at].save_snapshot(snapshot).await.unwrap();
                }
            }
            Step::Restore => {
                let Some((id, saved)) = &model.saved else { continue };
                let found = stores[at].read_snapshot(id).await.unwrap();
                let Some(snapshot) = found else {
                    assert!(saved.is_empty(), "the snapshot is gone");
                    continue;
                };
                let held: BTreeMap<u64, String> =
                    snapshot.messages.iter().map(|m| (m.seq, m.message.content.clone())).collect();
                assert_eq!(&held, saved);
                let restored = match stores[at]
                    .restore(id, Timestamp::MIN, RestoreThreads::default(), clock.now())
                    .await
                {
                    Ok(restored) => restored,
                    // The limit leaves no room for it.
                    Err(Error::InvalidMessage { .. }) => {
                        if model.has_expired(now) {
                            model.drop_hidden(now);
                        }
                        resync(model, &stores[at]).await;
                        continue;
                    }
                    Err(error) => panic!("{error}"),
                };
                if model.has_expired(now) && !restored.is_empty() {
                    model.drop_hidden(now);
                }
                for stored in restored {
                    let (_, root) = stored.message.restored_from().unwrap();
                    model.last_seq = stored.seq - 1;
                    let words = stored.message.content.clone();
                    model.add(stored.message.role, words, now, false);
                    model.copies.insert(stored.seq, root);
                }
                resync(model, &stores[at]).await;
            }
            Step::Reopen => stores[at] = open(root.path(), &scope(at), &clock).await,
            Step::Pack => drop(stores[at].pack(|_| {}).await.unwrap()),
        }
        let now = clock.now().timestamp();
        for (at, store) in stores.iter().enumerate() {
            let reading = store.read_tail(usize::MAX).await.unwrap();
            assert!(reading.skipped.is_empty(), "{:?}", reading.skipped);
            let read: Vec<_> =
                reading.messages.iter().map(|m| (m.seq, m.message.content.clone())).collect();
            assert_eq!(read, models[at].shown(now), "{} after step {number}", scope(at));
            let mine = format!("{}: ", scope(at));
            assert!(read.iter().all(|(_, words)| words.starts_with(&mine)));
            let some = store.read_seqs(2..=7).await.unwrap().messages;
            let expected: Vec<_> =
                read.iter().filter(|(seq, _)| (2..=7).contains(seq)).cloned().collect();
            let some: Vec<_> = some.iter().map(|m| (m.seq, m.message.content.clone())).collect();
            assert_eq!(some, expected);
            let stats = store.stats().await.unwrap();
            assert_eq!(stats.message_count, read.len() as u64, "{stats:?}");
        }
    }
    for (at, store) in stores.iter().enumerate() {
        let report = store.verify(|_| {}).await.unwrap();
        assert!(report.findings.is_empty(), "{} {:?}", scope(at), report.findings);
    }
}

/// Takes the last number from the store, because the number of deletion records is the store's own decision.
async fn resync(model: &mut Model, store: &FileConversationStore) {
    model.last_seq = store.read_tail(0).await.unwrap().last_seq;
}

fn cases() -> ProptestConfig {
    let cases = std::env::var("SOTTOVOCE_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { cases: cases.unwrap_or(24), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn every_conversation_reads_as_if_there_were_no_other(
        steps in prop::collection::vec((0..SCOPES, steps()), 1..60)
    ) {
        block_on(hold(steps));
    }
}

#[test]
fn a_scope_that_cannot_be_a_folder_is_refused_before_anything_is_touched() {
    let root = tempfile::tempdir().unwrap();
    for id in ["", "a\0b", "line\nbreak", &"x".repeat(4096)] {
        let options = StoreOptions::new(key()).scope(dm(id));
        let opened = block_on(options.open(root.path()));
        assert!(matches!(opened, Err(Error::InvalidScope { .. })));
    }
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
}
