//! Personas in prompts: the persona comes first and unchanged, however long the conversation is.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::SignedDuration;
use serde_json::Value;
use sottovoce::context::{LastNContextProvider, PersonaHistoryProvider, Placement};
use sottovoce::conversation::PreparedTurn;
use sottovoce::model::{
    OllamaChatRenderer, OllamaPromptRenderer, OpenAiChatRenderer, PromptRenderer,
};
use sottovoce::persona::{AssignedPersona, Persona};
use sottovoce::prompt::EntryOutcome;
use sottovoce::{
    ChatRole, Clock, Conversation, ConversationStore, EncryptionKey, ManualClock, ModelOptions,
    StoreOptions,
};

const SYSTEM: &str = "You are Mira, and you never lose your temper.";
const PERSONALITY: &str = "Warm, brief, a little dry";

struct Stage {
    conversation: Conversation,
    clock: Arc<ManualClock>,
}

async fn stage(persona: Option<Persona>, window: Option<usize>) -> Stage {
    let clock = Arc::new(ManualClock::at_utc("2025-08-24T05:31:01Z".parse().unwrap()));
    let time: Arc<dyn Clock> = clock.clone();
    let options = StoreOptions::new(EncryptionKey::generate().unwrap()).clock(Arc::clone(&time));
    let store: Arc<dyn ConversationStore> = Arc::new(options.open_in_memory().await.unwrap());
    if let Some(persona) = persona {
        let assigned_persona = AssignedPersona::new(persona, time.now().timestamp());
        let change = move |profile: &mut sottovoce::store::Profile| {
            profile.assigned_persona = Some(assigned_persona.clone())
        };
        store.change_profile(Box::new(change)).await.unwrap();
    }
    let last_n = Arc::new(LastNContextProvider::in_blocks());
    let history = PersonaHistoryProvider::new(last_n);
    let mut builder =
        Conversation::builder(store.clone()).system("The usual system prompt.").history(history);
    if let Some(window) = window {
        builder = builder.model_window(window);
    }
    Stage { conversation: builder.last_n(6).build(), clock }
}

impl Stage {
    async fn turn(&self, number: usize) -> PreparedTurn {
        let heavy = "and I really cannot take it any more, do you hear me? ".repeat(number % 5);
        let heard =
            self.conversation.prepare_turn(format!("Turn {number}: {heavy}")).await.unwrap();
        self.clock.advance(SignedDuration::from_secs(40));
        self.conversation
            .store_reply(format!("I hear you, that was turn {number}."))
            .await
            .unwrap();
        self.clock.advance(SignedDuration::from_secs(40));
        heard
    }
}

fn mira(max_history_tokens: u32) -> Persona {
    let mut persona = Persona::new(SYSTEM).personality(PERSONALITY);
    persona.max_history_tokens = max_history_tokens;
    persona.temperature = 0.0;
    persona.max_tokens = 321;
    persona
}

fn request(heard: &PreparedTurn) -> Value {
    let rendered = OllamaChatRenderer::new(ModelOptions::new("llama3.2")).render(&heard.prompt);
    serde_json::from_str(&rendered.body).unwrap()
}

#[tokio::test]
async fn after_two_hundred_turns_the_personality_is_still_first_and_whole() {
    let limit = 2000;
    let stage = stage(Some(mira(limit)), None).await;
    let mut heads = BTreeSet::new();
    let (mut starts, mut truncated) = (BTreeSet::new(), 0);
    for number in 1..=200 {
        let heard = stage.turn(number).await;
        let request = request(&heard);
        let messages = request["messages"].as_array().unwrap();
        heads.insert(messages[0].to_string());
        assert_eq!(messages[0]["role"], "system");
        assert_eq!(
            messages[0]["content"].as_str().unwrap(),
            format!("{SYSTEM}\n\nPersonality: {PERSONALITY}")
        );
        // The newest messages always reach the model, and only whole exchanges are dropped.
        let newest = messages.last().unwrap();
        assert_eq!(newest["role"], "user");
        assert!(newest["content"].as_str().unwrap().contains(&format!("Turn {number}:")));
        if messages.len() > 2 {
            assert_eq!(messages[1]["role"], "user");
            assert_eq!(messages.len() % 2, 0, "an exchange is cut in two");
        }
        let receipt = &heard.receipt;
        assert!(receipt.history_tokens() <= limit as usize);
        assert_eq!(receipt.history_limit, Some(limit as usize));
        assert!(receipt.is_history_filled(0.8) || receipt.history_tokens() < 1600);
        truncated += usize::from(receipt.is_history_truncated());
        starts.insert(receipt.start());
        // Everything left out is older than everything included.
        let history = receipt.entries.iter().filter(|e| e.placement == Placement::History);
        let kept: Vec<bool> = history.map(|e| e.outcome == EntryOutcome::Included).collect();
        assert!(kept.is_sorted(), "turn {number}");
    }
    assert_eq!(heads.len(), 1, "the head of the prompt has changed");
    assert!(truncated > 100, "the history never was too long");
    // The start moves a block at a time, so that a model seldom reads everything again.
    assert!(starts.len() < 30, "{}", starts.len());
}

#[tokio::test]
async fn what_the_model_has_read_is_read_again_only_where_a_block_was_dropped() {
    let stage = stage(Some(mira(2000)), None).await;
    let (mut last, mut again) = (String::new(), 0);
    for number in 1..=200 {
        let heard = stage.turn(number).await;
        let body = OllamaChatRenderer::new(ModelOptions::new("m")).render(&heard.prompt).body;
        let same = last.bytes().zip(body.bytes()).take_while(|(a, b)| a == b).count();
        // The last utterance and its answer are new; everything before is unchanged.
        again += usize::from(number > 1 && same + 900 < last.len());
        last = body;
    }
    assert!(again < 30, "{again} of 200 prompts were read again");
}

#[tokio::test]
async fn a_narrow_window_never_costs_the_persona_anything() {
    let stage = stage(Some(mira(15_000)), Some(1024)).await;
    for number in 1..=60 {
        let heard = stage.turn(number).await;
        assert!(
            heard.prompt.system.starts_with(SYSTEM) && heard.prompt.system.ends_with(PERSONALITY)
        );
        // The answer has its own room in the window.
        assert_eq!(heard.receipt.budget_tokens, Some(1024 - 321));
        assert!(!heard.receipt.is_over_budget());
    }
}

#[tokio::test]
async fn all_of_a_short_history_is_there_however_many_messages_it_has() {
    let stage = stage(Some(mira(15_000)), None).await;
    for number in 1..=100 {
        stage.turn(number).await;
    }
    let heard = stage.turn(101).await;
    assert_eq!(heard.receipt.included(), 200);
    assert!(!heard.receipt.is_history_truncated());
}

#[tokio::test]
async fn temperature_and_length_reach_every_kind_of_model_and_zero_is_a_temperature() {
    let stage = stage(Some(mira(2000)), None).await;
    let heard = stage.turn(1).await;
    let mut usual = ModelOptions::new("llama3.2");
    (usual.temperature, usual.num_predict) = (Some(1.3), Some(99));
    let renderers: [Box<dyn PromptRenderer>; 3] = [
        Box::new(OllamaChatRenderer::new(usual.clone())),
        Box::new(OllamaPromptRenderer::new(usual.clone())),
        Box::new(OpenAiChatRenderer::new(usual)),
    ];
    for renderer in renderers {
        let body: Value = serde_json::from_str(&renderer.render(&heard.prompt).body).unwrap();
        let of = |names: [&str; 2]| {
            let found = names.map(|name| body.pointer(name).cloned()).into_iter().flatten().next();
            found.unwrap()
        };
        assert_eq!(of(["/options/temperature", "/temperature"]), 0.0);
        assert_eq!(of(["/options/num_predict", "/max_tokens"]), 321);
    }
}

#[tokio::test]
async fn without_its_personality_the_system_prompt_stays() {
    let stage = stage(Some(mira(2000)), None).await;
    let plain = stage.conversation.clone().without_personality();
    let heard = plain.prepare_turn("Hello").await.unwrap();
    assert_eq!(heard.prompt.system, SYSTEM);
    assert_eq!(heard.prompt.temperature, Some(0.0));
}

#[tokio::test]
async fn a_conversation_that_is_no_context_is_asked_as_ever() {
    let stage = stage(None, None).await;
    for number in 1..=40 {
        stage.turn(number).await;
    }
    let heard = stage.turn(41).await;
    assert_eq!(heard.prompt.system, "The usual system prompt.");
    assert_eq!((heard.prompt.temperature, heard.prompt.max_tokens), (None, None));
    assert_eq!(heard.receipt.history_limit, None);
    assert!(heard.receipt.included() <= 24);
    assert_eq!(heard.message.message.role, ChatRole::User);
}

#[tokio::test]
async fn a_history_is_nearly_full_by_what_really_limits_it() {
    // A limit far above the model's window, as of a context for a larger model, and no limit.
    for persona in [Some(mira(15_000)), None] {
        let limit = persona.is_some().then_some(15_000);
        let stage = stage(persona, Some(1200)).await;
        let (mut warned, mut cut) = (None, None);
        for number in 1..=60 {
            let receipt = stage.turn(number).await.receipt;
            let room = receipt.history_room.unwrap();
            assert_eq!(receipt.history_limit, limit);
            assert!(room < 1000 && receipt.history_tokens() <= room, "{room}");
            if receipt.is_history_truncated() {
                cut = cut.or(Some(number));
            } else if receipt.is_history_filled(0.8) {
                warned = warned.or(Some(number));
            }
        }
        if limit.is_some() {
            assert!(warned.unwrap() < cut.unwrap(), "{warned:?} {cut:?}");
        }
    }
}
