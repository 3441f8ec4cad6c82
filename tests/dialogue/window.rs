//! The rolling window, the clear marker, threads and other context.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::string_slice)]

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{block_on, key};
use jiff::{SignedDuration, Timestamp};
use sottovoce::context::{
    Context, ContextProvider, ContextRequest, LastNContextProvider, Placement,
    RollingWindowProvider,
};
use sottovoce::model::{OllamaChatRenderer, PromptRenderer};
use sottovoce::prompt::Prompt;
use sottovoce::{
    ChatMessage, ChatRole, Clock, Conversation, ConversationBuilder, ConversationStore,
    FileConversationStore, ManualClock, ModelOptions, Scope, StoreOptions, ToolCall,
};

fn start() -> Timestamp {
    "2026-02-12T14:30:00Z".parse().unwrap()
}

/// A store, a clock, and a conversation with a rolling window.
struct Room {
    root: tempfile::TempDir,
    clock: Arc<ManualClock>,
    store: Arc<FileConversationStore>,
}

async fn open(root: &Path, clock: &Arc<ManualClock>) -> Arc<FileConversationStore> {
    let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(clock);
    let scope = Scope::Named { id: "mira".into() };
    Arc::new(StoreOptions::new(key()).scope(scope).clock(clock).open(root).await.unwrap())
}

impl Room {
    async fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at_utc(start()));
        let store = open(root.path(), &clock).await;
        Self { root, clock, store }
    }

    fn shared(&self) -> Arc<dyn ConversationStore> {
        Arc::clone(&self.store) as _
    }

    fn window(&self) -> RollingWindowProvider {
        RollingWindowProvider::new()
    }

    fn builder(&self) -> ConversationBuilder {
        Conversation::builder(self.store.clone()).system("You are Mira.")
    }

    fn conversation(&self, builder: ConversationBuilder) -> Conversation {
        builder.last_n(99).build()
    }

    fn rolling(&self) -> Conversation {
        self.conversation(self.builder().history(self.window()))
    }

    fn wait(&self, hours: i64) {
        self.clock.advance(SignedDuration::from_hours(hours));
    }

    async fn exchange(&self, conversation: &Conversation, words: &str) {
        conversation.prepare_turn(words).await.unwrap();
        conversation.store_reply(format!("{words}!")).await.unwrap();
    }
}

async fn recalled(conversation: &Conversation) -> Vec<String> {
    let (prompt, receipt) = conversation.prompt("And now?").await.unwrap();
    assert!(receipt.skipped.is_empty(), "{:?}", receipt.skipped);
    history(&prompt)
}

fn history(prompt: &Prompt) -> Vec<String> {
    prompt.placed(Placement::History).map(|message| message.content.clone()).collect()
}

#[test]
fn a_window_holds_what_was_said_within_a_day_and_nothing_older() {
    block_on(async {
        let room = Room::new().await;
        let talk = room.rolling();
        room.exchange(&talk, "old").await;
        room.wait(13);
        room.exchange(&talk, "lately").await;
        assert_eq!(recalled(&talk).await, ["old", "old!", "lately", "lately!"]);
        room.wait(12);
        assert_eq!(recalled(&talk).await, ["lately", "lately!"]);
        room.wait(12);
        assert!(recalled(&talk).await.is_empty());
        let stored = room.store.read_tail(99).await.unwrap().messages;
        assert_eq!(stored.len(), 4, "what is out of the window stays stored");
        assert_eq!(stored[0].message.timestamp, start());
        let agents = stored.iter().map(|stored| stored.scope.to_string());
        assert!(agents.eq(std::iter::repeat_n("named/mira".to_owned(), 4)));
    });
}

#[test]
fn a_window_is_as_long_as_the_conversations_own_settings_say() {
    block_on(async {
        let room = Room::new().await;
        let talk = room
            .conversation(room.builder().history(room.window().window(Duration::from_secs(3600))));
        room.exchange(&talk, "old").await;
        room.wait(2);
        assert!(recalled(&talk).await.is_empty());
        let three_hours = NonZeroU64::new(3 * 3600);
        let change =
            move |profile: &mut sottovoce::store::Profile| profile.window_seconds = three_hours;
        room.store.change_profile(Box::new(change)).await.unwrap();
        assert_eq!(recalled(&talk).await, ["old", "old!"]);
        let again = open(room.root.path(), &room.clock).await;
        assert_eq!(again.profile().await.unwrap().window_seconds, three_hours);
    });
}

#[test]
fn clearing_hides_what_was_said_before_and_deletes_nothing() {
    block_on(async {
        let room = Room::new().await;
        let talk = room.rolling();
        room.exchange(&talk, "before").await;
        room.wait(1);
        let profile = talk.clear().await.unwrap();
        assert_eq!(profile.cleared.unwrap().at, room.clock.now().timestamp());
        assert!(recalled(&talk).await.is_empty());
        room.exchange(&talk, "after").await;
        assert_eq!(recalled(&talk).await, ["after", "after!"], "though the clock stood still");
        assert_eq!(room.store.read_tail(99).await.unwrap().messages.len(), 4);
        let by_number = room.conversation(room.builder().history(LastNContextProvider::new()));
        assert_eq!(recalled(&by_number).await, ["after", "after!"], "whatever gives the history");
    });
}

#[test]
fn of_several_clears_the_latest_counts_and_it_outlives_a_restart() {
    block_on(async {
        let room = Room::new().await;
        let talk = room.rolling();
        for words in ["one", "two", "three"] {
            room.exchange(&talk, words).await;
            if words != "three" {
                talk.clear().await.unwrap();
                room.wait(1);
            }
        }
        assert_eq!(recalled(&talk).await, ["three", "three!"]);
        // A clock that goes back does not move the marker, and later messages are not cleared.
        room.wait(-48);
        talk.clear().await.unwrap();
        room.exchange(&talk, "four").await;
        assert_eq!(recalled(&talk).await, ["four", "four!"]);
        room.wait(48);
        let again = Room { store: open(room.root.path(), &room.clock).await, ..room };
        assert_eq!(recalled(&again.rolling()).await, ["four", "four!"]);
        assert_eq!(again.store.read_tail(99).await.unwrap().messages.len(), 8, "nothing is lost");
    });
}

#[test]
fn another_process_sees_at_once_that_the_context_was_cleared() {
    block_on(async {
        let room = Room::new().await;
        let talk = room.rolling();
        room.exchange(&talk, "before").await;
        assert_eq!(recalled(&talk).await.len(), 2);
        open(room.root.path(), &room.clock).await.clear().await.unwrap();
        assert!(recalled(&talk).await.is_empty());
    });
}

#[test]
fn an_exchange_with_tools_is_in_the_window_whole_or_not_at_all() {
    block_on(async {
        let room = Room::new().await;
        let talk = room.rolling();
        let call = ToolCall {
            id: "c1".into(),
            name: "light".into(),
            arguments: serde_json::json!({"on": true}),
        };
        talk.prepare_turn("Light on").await.unwrap();
        room.wait(1);
        let mut asks = talk.message(ChatRole::Assistant, "");
        asks.tool_calls = vec![call];
        let mut result = talk.message(ChatRole::Tool, "done");
        result.tool_call_id = Some("c1".into());
        room.store.append_all(vec![asks, result]).await.unwrap();
        talk.store_reply("It is on.").await.unwrap();
        room.exchange(&talk, "Thanks").await;
        assert_eq!(
            recalled(&talk).await,
            ["Light on", "", "done", "It is on.", "Thanks", "Thanks!"]
        );
        room.wait(23);
        room.clock.advance(SignedDuration::from_mins(-30));
        assert_eq!(recalled(&talk).await.len(), 6);
        room.wait(1);
        assert_eq!(
            recalled(&talk).await,
            ["Thanks", "Thanks!"],
            "the question is out, and with it the rest"
        );
        let kept = room.store.read_seqs(2..=3).await.unwrap().messages;
        assert_eq!(kept[0].message.tool_calls[0].name, "light");
        assert_eq!(kept[1].message.tool_call_id.as_deref(), Some("c1"));
    });
}

#[test]
fn threads_hear_nothing_of_each_other_and_a_clear_is_for_all_of_them() {
    block_on(async {
        let room = Room::new().await;
        let main = room.rolling();
        let (one, two) = (main.clone().in_thread("1"), main.clone().in_thread("2"));
        for (talk, words) in [(&main, "main"), (&one, "one"), (&two, "two"), (&one, "more")] {
            room.exchange(talk, words).await;
        }
        assert_eq!(recalled(&main).await, ["main", "main!"]);
        assert_eq!(recalled(&one).await, ["one", "one!", "more", "more!"]);
        assert_eq!(recalled(&two).await, ["two", "two!"]);
        let ids: Vec<_> = room
            .store
            .read_tail(99)
            .await
            .unwrap()
            .messages
            .iter()
            .map(|m| m.message.thread_id.clone())
            .collect();
        assert_eq!(ids[2].as_deref(), Some("1"));
        assert_eq!(one.last_exchange().await.unwrap().len(), 2);
        assert_eq!(one.last_exchange().await.unwrap()[0].message.content, "more");
        for provider in [LastNContextProvider::new(), LastNContextProvider::in_blocks()] {
            let talk = room.conversation(room.builder().history(provider)).in_thread("2");
            assert_eq!(recalled(&talk).await, ["two", "two!"]);
        }
        two.clear().await.unwrap();
        for talk in [&main, &one, &two] {
            assert!(recalled(talk).await.is_empty());
        }
    });
}

#[test]
fn a_thread_that_is_rarely_spoken_in_is_recalled_from_far_back() {
    block_on(async {
        let room = Room::new().await;
        let main = room.conversation(room.builder().history(LastNContextProvider::new()));
        room.exchange(&main.clone().in_thread("rare"), "long ago").await;
        let many = (0..700).map(|n| ChatMessage::at(ChatRole::User, n.to_string(), start()));
        room.store.append_all(many.collect()).await.unwrap();
        assert_eq!(recalled(&main.clone().in_thread("rare")).await, ["long ago", "long ago!"]);
        assert_eq!(recalled(&main).await.len(), 99);
    });
}

/// What a host puts at one place of each prompt.
struct Notes<F>(Placement, F);

#[async_trait::async_trait]
impl<F: Fn() -> Vec<String> + Send + Sync> ContextProvider for Notes<F> {
    fn placement(&self) -> Placement {
        self.0
    }

    async fn get_context(&self, request: &ContextRequest<'_>) -> sottovoce::Result<Context> {
        let now = request.now.unwrap();
        let note = |text| ChatMessage::at(ChatRole::System, text, now).into();
        Ok(Context::new(self.1().into_iter().map(note).collect(), "the host's"))
    }
}

#[test]
fn an_agent_gets_its_documents_first_and_other_activities_last() {
    block_on(async {
        let room = Room::new().await;
        let documents = Notes(Placement::Stable, || {
            vec![
                "README.md:\nThe kitchen has two lights.".to_owned(),
                "household.md:\nMisaki is allergic to peanuts.".to_owned(),
            ]
        });
        let state = Arc::new(std::sync::Mutex::new("active"));
        let source = Arc::clone(&state);
        let activities = Notes(Placement::NewestTurn, move || {
            let state = *source.lock().unwrap();
            vec![
                format!("thread 2 ({state}): Shopping list"),
                "process 4711 (running): backup".to_owned(),
            ]
        });
        let talk = room.conversation(
            room.builder().context(documents).context(activities).history(room.window()),
        );
        let thread = talk.in_thread("1");
        room.exchange(&thread, "Set a timer").await;
        let request =
            |prompt: &Prompt| OllamaChatRenderer::new(ModelOptions::new("m")).render(prompt).body;
        let (prompt, _) = thread.prompt("How long still?").await.unwrap();
        let first = request(&prompt);
        let at = |body: &str, words: &str| {
            body.find(words).unwrap_or_else(|| panic!("{words} in {body}"))
        };
        let order = [
            "You are Mira.",
            "two lights",
            "peanuts",
            "Set a timer",
            "thread 2 (active): Shopping list",
            "process 4711 (running): backup",
            "How long still?",
        ];
        let places: Vec<usize> = order.iter().map(|words| at(&first, words)).collect();
        assert!(places.is_sorted(), "{places:?} in {first}");
        // Activities change from turn to turn. The model need not read anything before them again.
        *state.lock().unwrap() = "done";
        let (prompt, _) = thread.prompt("How long still?").await.unwrap();
        let second = request(&prompt);
        let same = first.bytes().zip(second.bytes()).take_while(|(a, b)| a == b).count();
        assert!(same > at(&first, "Set a timer!"), "{same}");
    });
}

#[test]
fn a_window_in_steps_keeps_the_head_of_prompts_for_hours() {
    block_on(async {
        let room = Room::new().await;
        let talk = room.conversation(room.builder().history(room.window().in_steps()));
        let mut heads = Vec::new();
        for hour in 0..72 {
            room.exchange(&talk, &format!("hour {hour}")).await;
            let recalled = recalled(&talk).await;
            if hour >= 30 {
                assert!(
                    (24..=31).contains(&(recalled.len() / 2)),
                    "{} at hour {hour}",
                    recalled.len()
                );
            }
            heads.push(recalled[0].clone());
            room.wait(1);
        }
        heads.dedup();
        assert!(heads.len() <= 9, "{heads:?}");
    });
}

#[test]
fn the_same_inputs_give_the_same_bytes_and_a_gap_or_a_new_day_shows() {
    block_on(async {
        let room = Room::new().await;
        let talk = room.rolling();
        room.exchange(&talk, "Good evening").await;
        room.wait(9);
        room.exchange(&talk, "Still up").await;
        room.wait(7);
        let render =
            |prompt: &Prompt| OllamaChatRenderer::new(ModelOptions::new("m")).render(prompt).body;
        let (prompt, _) = talk.prompt("Good morning").await.unwrap();
        let body = render(&prompt);
        let (again, _) = talk.prompt("Good morning").await.unwrap();
        assert_eq!(render(&again), body);
        for shown in [
            "[Thursday 12 February 2026 14:30 +00:00] Good evening",
            "[Thursday 23:30, 9 hours later] Still up",
            "[Friday 13 February 06:30, 7 hours later] Good morning",
        ] {
            assert!(body.contains(shown), "{shown} in {body}");
        }
        // In the history it reads as it did in the newest turn.
        talk.prepare_turn("Good morning").await.unwrap();
        talk.store_reply("Good morning!").await.unwrap();
        let (next, _) = talk.prompt("Coffee?").await.unwrap();
        assert!(render(&next).contains("[Friday 13 February 06:30, 7 hours later] Good morning"));
    });
}

/// How many of 40 messages, one an hour, a conversation with these settings recalls.
async fn configured(room: &Room, settings: &[(&str, &str)]) -> usize {
    let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let none = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("crates/sottovoce-mcp/tests/none.json");
    let config = sottovoce::Config::load_with(Some(&none), settings).unwrap();
    let conversation = config.conversation(room.shared()).unwrap();
    if room.store.read_tail(1).await.unwrap().messages.is_empty() {
        for hour in 0..20 {
            room.exchange(&conversation, &hour.to_string()).await;
            room.wait(2);
        }
    }
    recalled(&conversation.without_model()).await.len()
}

#[test]
fn a_rolling_window_is_a_setting_of_the_conversation() {
    block_on(async {
        let room = Room::new().await;
        let rolls = [("SOTTOVOCE__CONTEXT__ROLLINGWINDOW", "true")];
        let set = async |rolls: Option<bool>, hours: u64| {
            let change = move |profile: &mut sottovoce::store::Profile| {
                profile.rolling_window = rolls;
                profile.window_seconds = NonZeroU64::new(hours * 3600);
            };
            room.store.change_profile(Box::new(change)).await.unwrap();
        };
        let newest = configured(&room, &[]).await;
        assert!((6..=24).contains(&newest), "{newest}");
        set(Some(true), 8).await;
        // Up to a quarter more, because the window moves in steps.
        assert!((6..=10).contains(&configured(&room, &[]).await));
        set(Some(false), 0).await;
        assert_eq!(configured(&room, &rolls).await, newest);
        set(None, 8).await;
        assert_eq!(configured(&room, &[]).await, newest);
        assert!((6..=10).contains(&configured(&room, &rolls).await));
    });
}

#[test]
fn an_exact_history_has_exactly_so_many_messages() {
    block_on(async {
        let room = Room::new().await;
        let exact = ("SOTTOVOCE__CONTEXT__EXACT", "true");
        assert!(configured(&room, &[]).await > 6);
        assert_eq!(configured(&room, &[exact]).await, 6);
        assert_eq!(configured(&room, &[exact, ("SOTTOVOCE__CONTEXT__LASTN", "9")]).await, 9);
    });
}

/// The history of a prompt with 1,024 tokens, after a fact, an article of 14,600 bytes and `later` short exchanges.
async fn beside_an_article(room: &Room, builder: ConversationBuilder, later: usize) -> Vec<String> {
    let talk = room.conversation(builder.budget(1024));
    let words = "The article goes on and on. ".repeat(14_600 / 28);
    room.exchange(&talk, "My cat is called Minka.").await;
    room.exchange(&talk, "The lamp is on.").await;
    talk.prepare_turn(words.as_str()).await.unwrap();
    talk.store_reply("It goes on and on.").await.unwrap();
    let mut before: Vec<String> = Vec::new();
    for turn in 0..=later {
        let (prompt, receipt) = talk.prompt("And now?").await.unwrap();
        let now = history(&prompt);
        assert!(now.starts_with(&before), "turn {turn}: the beginning changed");
        let shortened = receipt.entries.iter().filter(|entry| entry.why.contains("shortened"));
        assert_eq!(shortened.count(), 1, "the receipt says so");
        before = now;
        room.exchange(&talk, &format!("Turn {turn}.")).await;
    }
    before
}

#[test]
fn one_long_message_is_shortened_and_cuts_off_nothing_that_was_said_before_it() {
    block_on(async {
        let in_blocks: fn(&Room) -> ConversationBuilder =
            |room| room.builder().history(LastNContextProvider::in_blocks());
        let rolling: fn(&Room) -> ConversationBuilder =
            |room| room.builder().history(room.window().in_steps());
        for builder in [in_blocks, rolling] {
            let room = Room::new().await;
            let left = beside_an_article(&room, builder(&room), 4).await;
            assert_eq!(
                left[..4],
                [
                    "My cat is called Minka.",
                    "My cat is called Minka.!",
                    "The lamp is on.",
                    "The lamp is on.!"
                ]
            );
            assert!(left[4].starts_with("The article goes on"), "{}", left[4]);
            assert!(left[4].ends_with("more characters are left out here]"), "{}", left[4]);
            assert!(left[4].len() < 500);
            assert_eq!(left[5], "It goes on and on.");
            assert_eq!(left.len(), 6 + 8);
            let stored = room.store.read_tail(99).await.unwrap().messages;
            assert!(stored.iter().any(|stored| stored.message.content.len() > 14_000));
        }
    });
}

#[test]
fn an_exchange_with_many_tool_calls_that_is_too_long_is_passed_over_as_a_whole() {
    block_on(async {
        let room = Room::new().await;
        let talk =
            room.conversation(room.builder().history(LastNContextProvider::new()).budget(300));
        room.exchange(&talk, "My cat is called Minka.").await;
        let question = talk.prepare_turn("Which lamps are on?").await.unwrap();
        let now = room.clock.now().timestamp();
        let mut said = Vec::new();
        for lamp in 0..20 {
            let mut call = ChatMessage::at(ChatRole::Assistant, "", now);
            let (id, name) = (format!("c{lamp}"), "lamp".to_owned());
            call.tool_calls = vec![ToolCall { id: id.clone(), name, arguments: lamp.into() }];
            let mut result = ChatMessage::at(ChatRole::Tool, "It is on.", now);
            result.tool_call_id = Some(id);
            said.extend([call, result]);
        }
        drop(question);
        room.store.append_all(said).await.unwrap();
        room.exchange(&talk, "Thank you.").await;
        let (prompt, receipt) = talk.prompt("And now?").await.unwrap();
        assert_eq!(
            history(&prompt),
            ["My cat is called Minka.", "My cat is called Minka.!", "Thank you.", "Thank you.!"]
        );
        let outcome = sottovoce::prompt::EntryOutcome::TooLong;
        let passed_over = receipt.entries.iter().filter(|entry| entry.outcome == outcome);
        assert_eq!(passed_over.count(), 41);
    });
}

#[test]
fn a_threads_history_is_there_after_thousands_of_messages_of_another_one() {
    block_on(async {
        let room = Room::new().await;
        let say = |thread: &str, number: usize| {
            let mut message =
                ChatMessage::at(ChatRole::User, format!("{thread} {number}"), start());
            message.thread_id = Some(thread.to_owned());
            message
        };
        room.store.append_all((0..10).map(|number| say("a", number)).collect()).await.unwrap();
        room.store.append_all((0..5000).map(|number| say("b", number)).collect()).await.unwrap();
        for history in [LastNContextProvider::new(), LastNContextProvider::in_blocks()] {
            let talk = room.conversation(room.builder().history(history)).in_thread("a");
            assert!(recalled(&talk).await.into_iter().eq((0..10).map(|n| format!("a {n}"))));
        }
        let talk = room.rolling().in_thread("a");
        assert!(recalled(&talk).await.into_iter().eq((0..10).map(|n| format!("a {n}"))));
    });
}
