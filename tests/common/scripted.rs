//! A model whose answers a test writes, and a conversation with it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sottovoce::{
    ChatMessage, ChatRole, Clock, Conversation, ConversationStore, Error, LanguageModel,
    LastNContextProvider, ModelFailure, ModelLimits, ModelOptions, ModelRequest,
    OllamaChatRenderer, PromptBuilder, Reply, ReplyPart, Result, SystemClock, SystemPromptProvider,
    Usage,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::open;

pub fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

pub type Parts = UnboundedSender<Result<ReplyPart>>;

/// A model whose answers the test writes.
#[derive(Default)]
pub struct Scripted {
    answers: Mutex<VecDeque<Result<UnboundedReceiver<Result<ReplyPart>>>>>,
    pub requests: Mutex<Vec<String>>,
    pub warmed: Mutex<Vec<String>>,
    /// Whether it can call functions.
    pub calls: AtomicBool,
}

impl Scripted {
    /// The next answer, part by part as the test sends it.
    pub fn hand(&self) -> Parts {
        let (sender, receiver) = unbounded_channel();
        self.answers.lock().unwrap().push_back(Ok(receiver));
        sender
    }

    pub fn answers(&self, parts: impl IntoIterator<Item = Result<ReplyPart>>) {
        let hand = self.hand();
        parts.into_iter().for_each(|part| hand.send(part).unwrap());
    }

    pub fn says(&self, text: &str) {
        self.answers([said(text), done()]);
    }

    pub fn refuses(&self, failure: ModelFailure) {
        self.answers.lock().unwrap().push_back(Err(model_error(failure)));
    }

    pub fn request(&self, at: usize) -> serde_json::Value {
        serde_json::from_str(&self.requests.lock().unwrap()[at]).unwrap()
    }

    /// The contents of a request's messages behind the system prompt.
    pub fn read(&self, at: usize) -> Vec<String> {
        let request = self.request(at);
        let messages = request["messages"].as_array().unwrap().iter().skip(1);
        messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    }
}

struct Parted(UnboundedReceiver<Result<ReplyPart>>);

#[async_trait]
impl Reply for Parted {
    async fn next(&mut self) -> Result<ReplyPart> {
        self.0.recv().await.unwrap_or_else(|| Err(broke_off()))
    }
}

#[async_trait]
impl LanguageModel for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    async fn limits(&self) -> Result<ModelLimits> {
        Ok(ModelLimits::window(4096).tools(self.calls.load(Ordering::Relaxed)))
    }

    async fn reply(&self, request: &ModelRequest) -> Result<Box<dyn Reply>> {
        self.requests.lock().unwrap().push(request.body.clone());
        let answer = self.answers.lock().unwrap().pop_front().expect("an answer in the script");
        Ok(Box::new(Parted(answer?)))
    }

    async fn warm_up(&self, request: &ModelRequest) -> Result<()> {
        self.warmed.lock().unwrap().push(request.body.clone());
        Ok(())
    }
}

pub fn said(text: &str) -> Result<ReplyPart> {
    Ok(ReplyPart::Text(text.to_owned()))
}

pub fn done() -> Result<ReplyPart> {
    Ok(ReplyPart::Done(Usage::default()))
}

pub fn model_error(failure: ModelFailure) -> Error {
    Error::Model { server: "http://127.0.0.1:1".to_owned(), failure }
}

pub fn broke_off() -> Error {
    model_error(ModelFailure::BrokeOff { reason: "the connection was cut".to_owned() })
}

pub struct House {
    pub conversation: Conversation,
    pub model: Arc<Scripted>,
    pub store: Arc<dyn ConversationStore>,
    pub folder: tempfile::TempDir,
}

impl House {
    pub async fn new() -> Self {
        Self::with(|conversation| conversation, |builder| builder).await
    }

    pub async fn with(
        conversation: impl FnOnce(Conversation) -> Conversation,
        builder: impl FnOnce(PromptBuilder) -> PromptBuilder,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn ConversationStore> = Arc::new(open(folder.path()).await);
        let model = Arc::new(Scripted::default());
        let made = PromptBuilder::new(
            SystemPromptProvider::new("You are a voice."),
            Arc::clone(store.scope()),
            clock(),
        )
        .with(Arc::new(LastNContextProvider::in_blocks(Arc::clone(&store))));
        let renderer = Arc::new(OllamaChatRenderer::new(ModelOptions::new("scripted")));
        let made = Conversation::new(Arc::clone(&store), builder(made), clock(), 6)
            .with_model(Arc::clone(&model) as Arc<dyn LanguageModel>, renderer);
        Self { conversation: conversation(made), model, store, folder }
    }

    /// All that is kept, as role, words, and why they were cut off.
    pub async fn kept(&self) -> Vec<(ChatRole, String, Option<String>)> {
        let all = self.store.read_tail(1000).await.unwrap();
        assert!(all.skipped.is_empty());
        let row = |message: &ChatMessage| {
            (message.role, message.content.clone(), message.cut_off().map(str::to_owned))
        };
        all.messages.iter().map(|stored| row(&stored.message)).collect()
    }

    pub async fn words(&self) -> Vec<String> {
        self.kept().await.into_iter().map(|(_, words, _)| words).collect()
    }
}
