//! Any sequence of steps: an index that lived through them answers as one that is made from nothing, and as the model.
//! `SOTTOVOCE_CASES` sets the number of sequences.

use std::fs;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use sottovoce::admin::Rekey;
use sottovoce::context::recall::{Recall, RecallQuery};
use sottovoce::export::{ExportForm, ExportRange, Exporter};
use sottovoce::import::{Backup, OpenStore};
use sottovoce::store::{HiddenMessages, RestoreThreads, Retention, SavedMessage, Snapshot};
use sottovoce::{
    ChatMessage, ChatRole, Clock, ConversationStore, EncryptionKey, FileConversationStore,
};

use crate::common::block_on;
use crate::home::{Home, files, recall, scores};
use crate::model::{Model, expected};

#[derive(Debug, Clone)]
enum Step {
    /// Messages one by one, by the first or the second instance.
    Append(usize, bool),
    AppendAll(usize, bool),
    /// Older messages of another system.
    Import(usize),
    /// A backup of another conversation, or one of an earlier state of this one.
    ImportBackup(bool),
    Backup,
    Forget(Vec<RangeInclusive<u64>>),
    ForgetAll,
    Clear,
    UndoClear,
    Prune(RangeInclusive<u64>),
    Keep(u32),
    Cleanup,
    Wait(i64),
    SaveSnapshot,
    RestoreSnapshot,
    Pack,
    Rekey,
    Reopen,
    /// Writes the index, by the first or the second instance.
    Save(bool),
    Delete(usize),
    Flip(usize, usize),
    Cut(usize, usize),
    Swap(usize, usize),
    /// Puts back the segments as they were at an earlier moment.
    PutBack(usize),
    Ask(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let range = (1..1500u64, 0..300u64).prop_map(|(first, more)| first..=first + more);
    prop_oneof![
        4 => (1..6usize, any::<bool>()).prop_map(|(n, by)| Step::Append(n, by)),
        4 => (1..400usize, any::<bool>()).prop_map(|(n, by)| Step::AppendAll(n, by)),
        2 => (1..40usize).prop_map(Step::Import),
        2 => any::<bool>().prop_map(Step::ImportBackup),
        1 => Just(Step::Backup),
        3 => prop::collection::vec(range.clone(), 1..4).prop_map(Step::Forget),
        1 => Just(Step::ForgetAll),
        2 => Just(Step::Clear),
        1 => Just(Step::UndoClear),
        2 => range.prop_map(Step::Prune),
        1 => (1..900u32).prop_map(Step::Keep),
        1 => Just(Step::Cleanup),
        2 => (1..50i64).prop_map(Step::Wait),
        1 => Just(Step::SaveSnapshot),
        2 => Just(Step::RestoreSnapshot),
        1 => Just(Step::Pack),
        1 => Just(Step::Rekey),
        3 => Just(Step::Reopen),
        6 => any::<bool>().prop_map(Step::Save),
        2 => (0..9usize).prop_map(Step::Delete),
        2 => (0..9usize, any::<usize>()).prop_map(|(of, at)| Step::Flip(of, at)),
        1 => (0..9usize, any::<usize>()).prop_map(|(of, at)| Step::Cut(of, at)),
        1 => (0..9usize, 0..9usize).prop_map(|(a, b)| Step::Swap(a, b)),
        2 => (0..9usize).prop_map(Step::PutBack),
        3 => (0..QUESTIONS.len()).prop_map(Step::Ask),
    ]
}

const QUESTIONS: [&str; 8] = [
    "What is my dog called?",
    "Where did Anna put the key of the shed?",
    "When did I plant the tomatoes?",
    "Did we talk about the violin last week?",
    "Turn on the lamp.",
    "How many eggs do the pancakes need?",
    "Who repaired the bicycle, and where do I live?",
    "",
];

const LINES: [&str; 16] = [
    "My dog is called Bruno{}.",
    "My dog is called Rex{} now.",
    "Anna put the key of the shed under pot {}.",
    "I planted {} tomatoes in the garden yesterday.",
    "The violin lesson number {} was on Tuesday.",
    "Turn on the lamp {}.",
    "Turn off lamp {}, please.",
    "The pancakes need {} eggs and milk. Beat them well, then wait half an hour.",
    "I live in Ulm, at number {}.",
    "I moved to Leipzig, to number {}.",
    "Ben repaired bicycle {}.",
    "Thank you!",
    "What time is it?",
    "Mein Hund heißt Bruno{}, und er bellt.",
    "I always drink my coffee with oat milk, cup {}.",
    "   ",
];

struct Walk {
    home: Home,
    keys: usize,
    stores: [Arc<FileConversationStore>; 2],
    recalls: [Recall; 2],
    model: Model,
    /// Files of segments at earlier moments: block and bytes.
    kept: Vec<Vec<(PathBuf, Vec<u8>)>>,
    other: PathBuf,
    backup: Option<PathBuf>,
    snapshot: Option<String>,
    said: usize,
    question: usize,
}

fn key(number: usize) -> EncryptionKey {
    EncryptionKey::from_secret(&format!("a secret of the tests, number {number}")).unwrap()
}

async fn open(home: &Home, number: usize) -> Arc<FileConversationStore> {
    Arc::new(home.options(key(number)).loose_files(4).open(home.root()).await.unwrap())
}

async fn export(store: &FileConversationStore, path: PathBuf) -> PathBuf {
    let _ = fs::remove_file(&path);
    let mut exporter = Exporter::to_file(ExportForm::Json, &path).unwrap();
    exporter.add(store, ExportRange::default(), |_| {}).await.unwrap();
    exporter.finish().await.unwrap();
    path
}

impl Walk {
    async fn new(first: usize) -> Self {
        let home = Home::new();
        let other = Home::new();
        let foreign = other.open().await;
        other.chatter(&foreign, 6).await;
        other.say(&foreign, "My dog is called Lassie.", "A good name.").await;
        let path = home.root().with_extension("other.json");
        let other = export(&foreign, path).await;
        let stores = [open(&home, 0).await, open(&home, 0).await];
        let recalls = [recall(&stores[0]), recall(&stores[1])];
        let mut walk = Self {
            home,
            keys: 0,
            stores,
            recalls,
            model: Model::default(),
            kept: Vec::new(),
            other,
            backup: None,
            snapshot: None,
            said: 0,
            question: 0,
        };
        if first > 0 {
            let messages = walk.lines(first);
            walk.stores[0].append_all(messages).await.unwrap();
        }
        walk
    }

    fn lines(&mut self, count: usize) -> Vec<ChatMessage> {
        (0..count).map(|_| self.line()).collect()
    }

    fn line(&mut self) -> ChatMessage {
        self.said += 1;
        let said = self.said;
        // Different numbers of steps between the lines, so that neighbours differ.
        let line = LINES[(said * said + said / 7) % LINES.len()];
        let text = line.replace("{}", &(said % 23).to_string());
        let role = [ChatRole::User, ChatRole::Assistant, ChatRole::User, ChatRole::Tool][said % 4];
        self.home.clock.advance(SignedDuration::from_secs(said as i64 % 3 * 40));
        let mut message = self.home.message(role, text);
        if said.is_multiple_of(5) {
            message.thread_id = Some("other".into());
        }
        if said.is_multiple_of(7) {
            message = message
                .with_metadata("speaker", if said.is_multiple_of(2) { "Anna" } else { "Ben" });
        }
        if said.is_multiple_of(11) {
            let until = self.home.now() + SignedDuration::from_hours(20);
            message = message.with_metadata("expiresAt", until.to_string());
        }
        message
    }

    fn store(&self, by: bool) -> &Arc<FileConversationStore> {
        &self.stores[usize::from(by)]
    }

    async fn reopen(&mut self) {
        self.stores = [open(&self.home, self.keys).await, open(&self.home, self.keys).await];
        self.recalls = [recall(&self.stores[0]), recall(&self.stores[1])];
    }

    /// The file of a segment, if there are any.
    fn segment(&self, of: usize) -> Option<PathBuf> {
        let files = files(&self.home.segments());
        files.get(of % files.len().max(1)).cloned()
    }

    async fn import(&self, path: &PathBuf) {
        let (root, keys) = (self.home.root(), self.keys);
        let clock = Arc::clone(&self.home.clock) as Arc<dyn Clock>;
        let opens: OpenStore = Box::new(move |scope| {
            let (root, clock) = (root.clone(), Arc::clone(&clock));
            let options = sottovoce::StoreOptions::new(key(keys)).clock(clock).scope(scope);
            Box::pin(async move { options.open(root).await })
        });
        Backup::new(path).import(opens, |_| {}, |_| {}).await.unwrap();
    }

    async fn take(&mut self, step: &Step) {
        match step {
            Step::Append(count, by) => {
                for message in self.lines(*count) {
                    self.store(*by).append_message(message).await.unwrap();
                }
            }
            Step::AppendAll(count, by) => {
                let messages = self.lines(*count);
                self.store(*by).append_all(messages).await.unwrap();
            }
            Step::Import(count) => {
                let ago = SignedDuration::from_hours(24 * 90);
                let mut messages = self.lines(*count);
                for message in &mut messages {
                    message.timestamp -= ago;
                    message.metadata.insert("importedFrom".into(), "elsewhere".into());
                }
                self.stores[0].import(messages).await.unwrap();
            }
            Step::ImportBackup(true) => self.import(&self.other).await,
            Step::ImportBackup(false) => {
                if let Some(backup) = &self.backup {
                    self.import(backup).await;
                }
            }
            Step::Backup => {
                let path = self.home.root().with_extension("own.json");
                self.backup = Some(export(&self.stores[0], path).await);
            }
            Step::Forget(ranges) => drop(self.stores[0].forget(ranges).await.unwrap()),
            Step::ForgetAll => drop(self.stores[1].forget_all().await.unwrap()),
            Step::Clear => drop(self.stores[0].clear().await.unwrap()),
            Step::UndoClear => {
                let undo = |profile: &mut sottovoce::store::Profile| {
                    let _ = profile.undo_clear();
                };
                self.stores[1].change_profile(Box::new(undo)).await.unwrap();
            }
            Step::Prune(range) => {
                let range = range.clone();
                let prune =
                    move |profile: &mut sottovoce::store::Profile| profile.prune(range.clone());
                self.stores[0].change_profile(Box::new(prune)).await.unwrap();
            }
            Step::Keep(messages) => {
                let limits = Some(Retention::FOREVER.max_messages(*messages));
                let effect = self.stores[0].limits_effect(limits).await.unwrap();
                let hidden = HiddenMessages::Delete;
                self.stores[0].change_limits(limits, hidden, &effect).await.unwrap();
            }
            Step::Cleanup => drop(self.stores[0].cleanup().await.unwrap()),
            Step::Wait(hours) => self.home.clock.advance(SignedDuration::from_hours(*hours)),
            Step::SaveSnapshot => {
                let messages = self.stores[0].read_tail(30).await.unwrap().messages;
                let saved = messages.iter().map(|m| SavedMessage::new(m.seq, m.message.clone()));
                let now = self.home.now();
                if let Ok(snapshot) = Snapshot::new(now, (now, now), saved.collect()) {
                    self.snapshot = Some(snapshot.id.clone());
                    self.stores[0].save_snapshot(snapshot).await.unwrap();
                }
            }
            Step::RestoreSnapshot => {
                if let Some(id) = &self.snapshot {
                    let threads = RestoreThreads::default();
                    let now = self.home.clock.now();
                    // Forgetting all of its messages deletes it.
                    drop(self.stores[1].restore(id, Timestamp::MIN, threads, now).await);
                }
            }
            Step::Pack => drop(self.stores[0].pack(|_| {}).await.unwrap()),
            Step::Rekey => {
                let rekey = Rekey::new(key(self.keys), key(self.keys + 1));
                rekey.run(self.home.root(), |_| ControlFlow::Continue(())).await.unwrap();
                assert!(files(&self.home.segments()).is_empty(), "a segment outlived its key");
                self.keys += 1;
                self.reopen().await;
            }
            Step::Reopen => self.reopen().await,
            Step::Save(by) => {
                let saved = self.recalls[usize::from(*by)].save().await;
                saved.unwrap();
                let files = files(&self.home.segments()).into_iter();
                self.kept.push(files.map(|path| (path.clone(), fs::read(path).unwrap())).collect());
            }
            Step::Delete(of) => drop(self.segment(*of).map(fs::remove_file)),
            Step::Flip(of, at) => {
                if let Some(path) = self.segment(*of) {
                    let mut bytes = fs::read(&path).unwrap();
                    if !bytes.is_empty() {
                        let at = at % bytes.len();
                        bytes[at] ^= 1 << (at % 7);
                    }
                    fs::write(path, bytes).unwrap();
                }
            }
            Step::Cut(of, at) => {
                if let Some(path) = self.segment(*of) {
                    let bytes = fs::read(&path).unwrap();
                    fs::write(path, &bytes[..at % bytes.len().max(1)]).unwrap();
                }
            }
            Step::Swap(a, b) => {
                if let (Some(a), Some(b)) = (self.segment(*a), self.segment(*b)) {
                    let bytes = fs::read(&a).unwrap();
                    fs::copy(&b, &a).unwrap();
                    fs::write(b, bytes).unwrap();
                }
            }
            Step::PutBack(which) => {
                let which = which % self.kept.len().max(1);
                for (path, bytes) in self.kept.get(which).into_iter().flatten() {
                    fs::write(path, bytes).unwrap();
                }
            }
            Step::Ask(which) => self.question = *which,
        }
    }

    /// Checks the answers of both instances, of one that loads the segments, and of one that has none.
    async fn check(&mut self) {
        let fresh = open(&self.home, self.keys).await;
        self.model.learn(&fresh).await;
        let now = self.home.clock.now();
        let question = QUESTIONS[self.question];
        let (limit, thread) = if self.question % 3 == 1 { (5, Some("other")) } else { (30, None) };
        let shows = |seq: u64| self.model.shows(seq, thread, now.timestamp());
        let expected = expected(&fresh, question, &now, limit, shows).await;
        let loaded = recall(&fresh);
        for (of, recall) in
            [("first", &self.recalls[0]), ("second", &self.recalls[1]), ("new", &loaded)]
        {
            let query = RecallQuery::new(question, now.clone(), limit);
            let found = recall.find_in(&query, thread).await.unwrap();
            assert!(found.skipped.is_empty(), "{:?}", found.skipped);
            assert!(found.hits.iter().all(|hit| shows(hit.stored.seq)), "{of}: hidden, but found");
            assert_eq!(scores(&found), expected, "{of}: {question}");
        }
    }
}

fn cases(default: u32) -> ProptestConfig {
    let cases = std::env::var("SOTTOVOCE_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::with_cases(cases.unwrap_or(default))
    }
}

proptest! {
    #![proptest_config(cases(3))]

    #[test]
    fn any_steps_leave_an_index_that_answers_as_one_made_from_nothing(
        first in prop_oneof![0..3usize, 900..1100usize],
        steps in prop::collection::vec(step(), 1..12),
    ) {
        block_on(async {
            let mut walk = Walk::new(first).await;
            walk.check().await;
            for step in &steps {
                walk.take(step).await;
                walk.check().await;
            }
        });
    }
}
