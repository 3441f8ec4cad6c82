//! Summaries, titles and prompts after messages were forgotten, cleared, pruned or expired, in any order.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use crate::common::{block_on, options};
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use sottovoce::model::{ModelLimits, OllamaChatRenderer, PromptRenderer, Reply};
use sottovoce::prompt::Prompt;
use sottovoce::store::Retention;
use sottovoce::{
    ChatMessage, ChatRole, Conversation, ConversationStore, FileConversationStore, LanguageModel,
    ManualClock, ModelOptions, Result,
};

fn start() -> Timestamp {
    "2025-08-24T16:00:00Z".parse().unwrap()
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at_utc(start()))
}

/// All words such as `w12w` in a text.
fn marks(text: &str) -> BTreeSet<String> {
    let is_mark = |word: &&str| {
        word.len() > 2
            && word.starts_with('w')
            && word.ends_with('w')
            && word[1..word.len() - 1].bytes().all(|b| b.is_ascii_digit())
    };
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(is_mark).map(str::to_owned).collect()
}

/// Repeats every mark that it reads.
#[derive(Default)]
struct Echo {
    requests: Mutex<Vec<String>>,
    meanwhile: Mutex<Option<(FileConversationStore, u64)>>,
}

#[async_trait]
impl LanguageModel for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    async fn limits(&self) -> Result<ModelLimits> {
        Ok(ModelLimits::window(4096))
    }

    async fn reply(&self, prompt: &Prompt) -> Result<Box<dyn Reply>> {
        let renderer = OllamaChatRenderer::new(ModelOptions::new("echo"));
        let body = renderer.render(prompt).body;
        self.requests.lock().unwrap().push(body.clone());
        let words = marks(&body).into_iter().collect::<Vec<_>>().join(" ");
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some((store, seq)) = meanwhile {
            store.forget(&[seq..=seq]).await?;
        }
        Ok(format!("said {words}").into())
    }
}

struct Talk {
    store: FileConversationStore,
    clock: Arc<ManualClock>,
    model: Arc<Echo>,
    next: u64,
}

impl Talk {
    async fn new(retention: Retention) -> Self {
        let clock = clock();
        let store = options().clock(clock.clone()).retention(retention);
        let store = store.open_in_memory().await.unwrap();
        Self { store, clock, model: Arc::default(), next: 0 }
    }

    fn conversation(&self, thread: Option<&str>) -> Conversation {
        let store: Arc<dyn ConversationStore> = Arc::new(self.store.clone());
        let builder = Conversation::builder(store.clone()).system("You are a voice.");
        let conversation = builder.last_n(500).model(self.model.clone()).build();
        match thread {
            Some(thread) => conversation.in_thread(thread),
            None => conversation,
        }
    }

    async fn say(&mut self, thread: Option<&str>, expires: Option<i64>) -> (u64, String) {
        self.clock.advance(SignedDuration::from_secs(1));
        self.next += 1;
        let word = format!("w{}w", self.next);
        let role = ChatRole::User;
        let mut message =
            ChatMessage::new(role, word.clone(), &sottovoce::Clock::now(&*self.clock));
        message.thread_id = thread.map(str::to_owned);
        if let Some(seconds) = expires {
            let at = message.timestamp + SignedDuration::from_secs(seconds);
            message = message.with_metadata("expiresAt", at.to_string());
        }
        (self.store.append_message(message).await.unwrap().seq, word)
    }

    async fn prompt(&self, thread: Option<&str>) -> String {
        let prompt = self.conversation(thread).prompt("And now?").await.unwrap().0;
        OllamaChatRenderer::new(ModelOptions::new("x")).render(&prompt).body
    }
}

#[test]
fn the_summary_of_a_conversation_that_has_expired_is_in_no_prompt() {
    block_on(async {
        let mut talk = Talk::new(Retention::FOREVER.ttl_seconds(60)).await;
        for _ in 0..10 {
            talk.say(None, None).await;
        }
        assert!(talk.conversation(None).summarize(2).await.unwrap().messages > 0);
        assert_eq!(marks(&talk.prompt(None).await).len(), 10);
        talk.clock.advance(SignedDuration::from_secs(61));
        assert!(marks(&talk.prompt(None).await).is_empty(), "{}", talk.prompt(None).await);
        talk.say(None, None).await;
        assert_eq!(marks(&talk.prompt(None).await).len(), 1);
    });
}

#[test]
fn the_summary_of_messages_over_the_limit_expires_with_the_conversation() {
    block_on(async {
        let mut talk = Talk::new(Retention::FOREVER.ttl_seconds(600).max_messages(8)).await;
        for _ in 0..8 {
            talk.say(None, None).await;
        }
        assert!(talk.conversation(None).summarize(2).await.unwrap().messages > 0);
        for _ in 0..60 {
            talk.say(None, None).await;
        }
        talk.clock.advance(SignedDuration::from_secs(601));
        talk.say(None, None).await;
        assert_eq!(marks(&talk.prompt(None).await).len(), 1, "{}", talk.prompt(None).await);
    });
}

#[test]
fn a_title_is_made_neither_of_what_has_expired_nor_of_what_is_forgotten_meanwhile() {
    block_on(async {
        let mut talk = Talk::new(Retention::FOREVER).await;
        talk.say(None, Some(5)).await;
        talk.say(None, None).await;
        let (seq, word) = talk.say(None, None).await;
        talk.clock.advance(SignedDuration::from_secs(10));
        *talk.model.meanwhile.lock().unwrap() = Some((talk.store.clone(), seq));
        let _ = talk.conversation(None).propose_title().await;
        assert!(!talk.model.requests.lock().unwrap()[0].contains("w1w"), "expired");
        let title = talk.store.profile().await.unwrap().title.clone().unwrap_or_default();
        assert!(!title.contains(&word), "{title}");
    });
}

#[derive(Debug, Clone)]
enum Step {
    Say(bool),
    Forget(usize),
    Clear,
    Prune(usize),
    Unprune,
    Compact(bool, usize),
    Uncompact(bool),
    Title,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => any::<bool>().prop_map(Step::Say),
        2 => (0usize..40).prop_map(Step::Forget),
        1 => Just(Step::Clear),
        2 => (0usize..40).prop_map(Step::Prune),
        1 => Just(Step::Unprune),
        3 => (any::<bool>(), 0usize..6).prop_map(|(thread, keep)| Step::Compact(thread, keep)),
        1 => any::<bool>().prop_map(Step::Uncompact),
        1 => Just(Step::Title),
    ];
    prop::collection::vec(step, 1..60)
}

#[derive(Debug, Default, Clone)]
struct Said {
    word: String,
    thread: bool,
    gone: bool,
    pruned: bool,
    /// Whether it was pruned when its thread was summarized.
    passed_over: bool,
}

async fn run(steps: Vec<Step>) -> std::result::Result<(), TestCaseError> {
    let mut talk = Talk::new(Retention::FOREVER).await;
    let mut said: BTreeMap<u64, Said> = BTreeMap::new();
    let name = |thread: bool| thread.then_some("t");
    for step in steps {
        let pick = |said: &BTreeMap<u64, Said>, at: usize| {
            said.keys().nth(at % said.len().max(1)).copied()
        };
        talk.model.requests.lock().unwrap().clear();
        let mut summarized = None;
        match &step {
            Step::Say(thread) => {
                let (seq, word) = talk.say(name(*thread), None).await;
                said.insert(seq, Said { word, thread: *thread, ..Said::default() });
            }
            Step::Forget(at) => {
                if let Some(seq) = pick(&said, *at) {
                    talk.store.forget(&[seq..=seq]).await.unwrap();
                    said.get_mut(&seq).unwrap().gone = true;
                }
            }
            Step::Clear => {
                talk.store.clear().await.unwrap();
                said.values_mut().for_each(|said| said.gone = true);
            }
            Step::Prune(at) => {
                if let Some(seq) = pick(&said, *at) {
                    let prune = Box::new(move |p: &mut sottovoce::store::Profile| p.prune([seq]));
                    talk.store.change_profile(prune).await.unwrap();
                    said.get_mut(&seq).unwrap().pruned = true;
                }
            }
            Step::Unprune => {
                talk.conversation(None).unprune(&[]).await.unwrap();
                said.values_mut().for_each(|said| said.pruned = false);
            }
            Step::Compact(thread, keep) => {
                let conversation = talk.conversation(name(*thread));
                let done = conversation.summarize(*keep).await.unwrap();
                if done.messages > 0 {
                    summarized = Some(*thread);
                    // After an undo and a new summary, the prompts are the same.
                    let with = talk.prompt(name(*thread)).await;
                    prop_assert_eq!(&with, &talk.prompt(name(*thread)).await);
                }
            }
            Step::Uncompact(thread) => {
                talk.conversation(name(*thread)).undo_summary().await.unwrap();
            }
            Step::Title => {
                let _ = talk.conversation(None).propose_title().await;
            }
        }
        if let Some(thread) = summarized {
            for said in said.values_mut().filter(|said| said.thread == thread && said.pruned) {
                said.passed_over = true;
            }
        }
        let gone: BTreeSet<String> =
            said.values().filter(|said| said.gone).map(|said| said.word.clone()).collect();
        for request in talk.model.requests.lock().unwrap().iter() {
            let told = marks(request);
            prop_assert!(told.is_disjoint(&gone), "{:?} told the model {:?}", step, told);
        }
        let forgotten = |title: &Option<String>| {
            title.as_ref().is_some_and(|title| !marks(title).is_disjoint(&gone))
        };
        let title = talk.store.profile().await.unwrap().title.clone();
        prop_assert!(!matches!(step, Step::Forget(_)) || !forgotten(&title), "{:?}", title);
        for thread in [false, true] {
            let there = marks(&talk.prompt(name(thread)).await);
            prop_assert!(there.is_disjoint(&gone), "{:?}: {:?} of {:?}", step, there, gone);
            for said in said.values() {
                if said.thread != thread {
                    prop_assert!(!there.contains(&said.word), "{:?}: other thread", step);
                } else if !said.gone && !said.pruned && !said.passed_over {
                    prop_assert!(
                        there.contains(&said.word),
                        "{:?} lost {} {:?}",
                        step,
                        said.word,
                        there
                    );
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn prompts_hold_what_was_said_and_nothing_that_is_gone_in_whatever_order(steps in steps()) {
        block_on(run(steps))?;
    }
}
