//! What a prompt must not hold is not recalled into it either, neither by an index that is new nor by one that knew it.

use std::sync::Arc;

use jiff::SignedDuration;
use sottovoce::context::recall::{Recall, RecallContextProvider, ScoreFloor};
use sottovoce::model::{OllamaChatRenderer, PromptRenderer};
use sottovoce::store::{HiddenMessages, Retention};
use sottovoce::{
    ChatRole, Conversation, ConversationStore, FileConversationStore, ModelOptions, Scope,
};

use crate::common::block_on;
use crate::home::Home;

const QUESTION: &str = "What is my dog called?";
const SECRET: &str = "Bruno";

#[derive(Debug, Clone, Copy, PartialEq)]
enum Hazard {
    Nothing,
    Thread,
    Cleared,
    Pruned,
    Expired,
    Doubted,
    Forgotten,
    AllForgotten,
    TooMany,
    TooOld,
    StartsClean,
}

const HAZARDS: [Hazard; 11] = [
    Hazard::Nothing,
    Hazard::Thread,
    Hazard::Cleared,
    Hazard::Pruned,
    Hazard::Expired,
    Hazard::Doubted,
    Hazard::Forgotten,
    Hazard::AllForgotten,
    Hazard::TooMany,
    Hazard::TooOld,
    Hazard::StartsClean,
];

/// Two messages with the secret, then others.
async fn filled(home: &Home, hazard: Hazard) -> Arc<FileConversationStore> {
    let store = home.open().await;
    let said = [
        (ChatRole::User, "My dog is called Bruno."),
        (ChatRole::Assistant, "Your dog is called Bruno, what a nice name!"),
    ];
    for (role, text) in said {
        let mut message = home.message(role, text);
        match hazard {
            Hazard::Thread => message.thread_id = Some("other".into()),
            Hazard::Expired => {
                let until = home.now() + SignedDuration::from_mins(30);
                message = message.with_metadata("expiresAt", until.to_string());
            }
            // The answer repeats it, and says nothing of how well it was heard.
            Hazard::Doubted if role == ChatRole::User => {
                message = message.with_metadata("confidence", "0.2");
            }
            _ => {}
        }
        store.append_message(message).await.unwrap();
    }
    home.say(&store, "What is the news?", "There is none.").await;
    home.chatter(&store, 20).await;
    store
}

async fn happen(hazard: Hazard, home: &Home, store: &FileConversationStore) {
    match hazard {
        Hazard::Cleared => drop(store.clear().await.unwrap()),
        Hazard::Pruned => {
            let prune = |profile: &mut sottovoce::store::Profile| profile.prune([1, 2]);
            store.change_profile(Box::new(prune)).await.unwrap();
        }
        Hazard::Expired => home.clock.advance(SignedDuration::from_hours(1)),
        Hazard::Forgotten => drop(store.forget(&[1..=2]).await.unwrap()),
        Hazard::AllForgotten => drop(store.forget_all().await.unwrap()),
        Hazard::TooMany | Hazard::TooOld => {
            let limits = match hazard {
                Hazard::TooMany => Retention::FOREVER.max_messages(10),
                _ => Retention::FOREVER.ttl_seconds(60),
            };
            let effect = store.limits_effect(Some(limits)).await.unwrap();
            let hidden = HiddenMessages::Delete;
            store.change_limits(Some(limits), hidden, &effect).await.unwrap();
            home.clock.advance(SignedDuration::from_hours(1));
        }
        _ => {}
    }
}

fn talk(store: &Arc<FileConversationStore>, hazard: Hazard) -> Conversation {
    let store = Arc::clone(store) as Arc<dyn ConversationStore>;
    let builder = Conversation::builder(store).system("You are a voice.").last_n(2);
    let builder = builder.recall(256, ScoreFloor::At(f32::NEG_INFINITY));
    match hazard {
        Hazard::Doubted => builder.min_confidence(0.5).build(),
        _ => builder.build(),
    }
}

/// All that a model would get.
async fn request(talk: &Conversation) -> String {
    let (prompt, _) = talk.prompt(QUESTION).await.unwrap();
    OllamaChatRenderer::new(ModelOptions::new("m")).render(&prompt).body.to_string()
}

#[test]
fn nothing_that_is_hidden_from_a_prompt_is_recalled_into_it() {
    for hazard in HAZARDS {
        block_on(async {
            let home = Home::new();
            let store = filled(&home, hazard).await;
            let mut knew = talk(&store, hazard);
            let before = request(&knew).await;
            let is_hidden_at_once = matches!(hazard, Hazard::Thread | Hazard::Doubted);
            assert_eq!(before.contains(SECRET), !is_hidden_at_once, "{hazard:?}: {before}");
            happen(hazard, &home, &store).await;
            let mut new = talk(&home.open().await, hazard);
            if hazard == Hazard::StartsClean {
                knew = knew.starting_clean().await.unwrap();
                new = new.starting_clean().await.unwrap();
            }
            let is_shown = hazard == Hazard::Nothing;
            for (talk, what) in [(&knew, "one that knew it"), (&new, "a new one")] {
                let after = request(talk).await;
                assert_eq!(after.contains(SECRET), is_shown, "{hazard:?}, {what}: {after}");
            }
        });
    }
}

#[test]
fn an_index_of_another_scope_brings_nothing_in_even_if_a_host_plugs_it_in() {
    block_on(async {
        let home = Home::new();
        let kitchen = filled(&home, Hazard::Nothing).await;
        let office = home.open_as(Scope::Named { id: "office".into() }).await;
        home.say(&office, "The printer is called Otto.", "I see.").await;
        home.chatter(&office, 9).await;
        let shared = Arc::clone(&office) as Arc<dyn ConversationStore>;
        let other = Arc::new(Recall::new(kitchen as Arc<dyn ConversationStore>));
        let provider = RecallContextProvider::new(other).floor(ScoreFloor::Any);
        let talk = Conversation::builder(shared).last_n(2).context(provider).build();
        assert!(!request(&talk).await.contains(SECRET));
    });
}

#[test]
fn many_hidden_messages_do_not_hide_a_visible_one() {
    block_on(async {
        let home = Home::new();
        let store = home.open().await;
        home.chatter(&store, 400).await;
        let said = |text: &str| home.message(ChatRole::User, text);
        let mut many = vec![said("My dog is called Rex, that is what my dog is called."); 4200];
        many.push(home.message(ChatRole::Assistant, "Then Bruno is the dog."));
        store.append_all(many).await.unwrap();
        let prune = |profile: &mut sottovoce::store::Profile| profile.prune(1..=4600);
        store.change_profile(Box::new(prune)).await.unwrap();
        home.chatter(&store, 4).await;
        let request = request(&talk(&store, Hazard::Nothing)).await;
        assert!(request.contains(SECRET) && !request.contains("Rex"), "{request}");
    });
}
