//! Recall with an embedding model: it decides among what the index finds, and nothing else.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;
use sottovoce::context::recall::{Recall, RecallContextProvider, ScoreFloor};
use sottovoce::context::{Embedder, Placement};
use sottovoce::{
    ChatMessage, ChatRole, Clock, Conversation, ConversationStore, Error, Result, SystemClock,
};

use crate::common::options;
use crate::stub::{Answer, Ask, OllamaStub};

const CHOIR: &str = "My sister sings in a choir.";
const BAND: &str = "My sister plays in a band.";
const QUESTION: &str = "Which hobby does my sister have?";

/// A model to which a question means the same as texts with its word, and the opposite of the others.
#[derive(Default)]
struct OneWord {
    word: Mutex<&'static str>,
    asked: AtomicUsize,
    is_down: AtomicBool,
}

#[async_trait]
impl Embedder for OneWord {
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        if self.is_down.load(Ordering::Relaxed) {
            return Err(Error::host("embed", std::io::Error::other("down")));
        }
        self.asked.fetch_add(texts.len(), Ordering::Relaxed);
        let word = *self.word.lock().unwrap();
        let is_near = |text: &str| text == QUESTION || text.contains(word);
        Ok(texts.iter().map(|text| vec![if is_near(text) { 3. } else { -3. }, 0.]).collect())
    }
}

async fn store() -> Arc<dyn ConversationStore> {
    let store = options().open_in_memory().await.unwrap();
    for text in [CHOIR, BAND, "I had soup for lunch.", "The train was late again."] {
        let message = ChatMessage::new(ChatRole::User, text, &SystemClock.now());
        store.append_message(message).await.unwrap();
    }
    Arc::new(store)
}

/// A conversation that recalls one line at a time, and has no other history.
fn talk(store: &Arc<dyn ConversationStore>, embedder: Option<Arc<dyn Embedder>>) -> Conversation {
    talk_above(store, ScoreFloor::At(2.), embedder)
}

fn talk_above(
    store: &Arc<dyn ConversationStore>,
    floor: ScoreFloor,
    embedder: Option<Arc<dyn Embedder>>,
) -> Conversation {
    let recall = Arc::new(Recall::new(Arc::clone(store)));
    let mut provider = RecallContextProvider::new(recall).tokens(20).floor(floor);
    if let Some(embedder) = embedder {
        provider = provider.embedding_with(embedder, 8.);
    }
    Conversation::builder(Arc::clone(store)).last_n(0).context(provider).build()
}

async fn recalled(talk: &Conversation) -> (Vec<String>, String) {
    let (prompt, receipt) = talk.prompt(QUESTION).await.unwrap();
    let texts = prompt.placed(Placement::NewestTurn).map(|message| message.content.clone());
    let why = receipt.entries.iter().find(|entry| entry.placement == Placement::NewestTurn);
    (texts.collect(), why.map(|entry| entry.why.clone()).unwrap_or_default())
}

#[tokio::test]
async fn the_model_decides_among_what_the_index_finds() {
    let store = store().await;
    for (word, text) in [("choir", CHOIR), ("band", BAND)] {
        let model = Arc::new(OneWord { word: Mutex::new(word), ..OneWord::default() });
        let (texts, why) = recalled(&talk(&store, Some(model))).await;
        assert_eq!(texts, [text]);
        assert!(why.contains("embedding 8.0"), "{why}");
    }
}

#[tokio::test]
async fn the_model_is_not_asked_where_the_index_finds_nothing() {
    let store = store().await;
    let model = Arc::new(OneWord::default());
    let embedder = Some(Arc::clone(&model) as Arc<dyn Embedder>);
    let talk = talk_above(&store, ScoreFloor::OfKind, embedder);
    for utterance in ["Thank you!", "Good morning."] {
        let (prompt, _) = talk.prompt(utterance).await.unwrap();
        assert_eq!(prompt.placed(Placement::NewestTurn).count(), 0);
    }
    assert_eq!(model.asked.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_passage_is_asked_for_once_and_a_forgotten_one_is_gone() {
    let store = store().await;
    let model = Arc::new(OneWord { word: Mutex::new("choir"), ..OneWord::default() });
    let talk = talk(&store, Some(Arc::clone(&model) as Arc<dyn Embedder>));
    assert_eq!(recalled(&talk).await.0, [CHOIR]);
    let first = model.asked.swap(0, Ordering::Relaxed);
    assert!(first > 2, "{first}");
    assert_eq!(recalled(&talk).await.0, [CHOIR]);
    assert_eq!(model.asked.load(Ordering::Relaxed), 1);
    store.forget(&[1..=1]).await.unwrap();
    assert_eq!(recalled(&talk).await.0, [BAND]);
}

#[tokio::test]
async fn without_its_model_recall_goes_on() {
    let store = store().await;
    let alone = recalled(&talk(&store, None)).await;
    assert_eq!(alone.0.len(), 1);
    let model = Arc::new(OneWord::default());
    model.is_down.store(true, Ordering::Relaxed);
    assert_eq!(recalled(&talk(&store, Some(model))).await, alone);
}

#[tokio::test]
async fn vectors_of_a_server_count_and_wrong_ones_do_not() {
    let store = store().await;
    let alone = recalled(&talk(&store, None)).await;
    let stub = OllamaStub::start();
    let server = || {
        let ollama =
            sottovoce::Ollama::new(&stub.url(), std::time::Duration::from_secs(5)).unwrap();
        Some(Arc::new(sottovoce::model::OllamaEmbedder::new(ollama, "e")) as Arc<dyn Embedder>)
    };
    // The stub's vectors differ by the length of the text alone: all are nearly the same.
    let (texts, why) = recalled(&talk(&store, server())).await;
    assert_eq!(texts, alone.0);
    assert!(why.contains("embedding 8.0"), "{why}");
    for wrong in [json!([[1.0]]), json!([[], [], [], [], []])] {
        stub.next_to(Ask::Embed, Answer::json(json!({ "embeddings": wrong })));
        assert_eq!(recalled(&talk(&store, server())).await.0, alone.0);
    }
}
