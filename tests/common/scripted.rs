//! A scripted model, and a conversation with it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses some of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use sottovoce::model::{
    ModelFailure, ModelLimits, OllamaChatRenderer, PromptRenderer, Reply, ReplyPart, Usage,
};
use sottovoce::prompt::Prompt;
use sottovoce::{
    ChatMessage, ChatRole, Clock, Conversation, ConversationBuilder, ConversationStore, Error,
    LanguageModel, ModelOptions, Result, StoreOptions, SystemClock,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::options;

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
    /// The next answer, whose parts the test sends.
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

    /// The contents of a request's messages after the system prompt.
    pub fn read(&self, at: usize) -> Vec<String> {
        let request = self.request(at);
        let messages = request["messages"].as_array().unwrap().iter().skip(1);
        messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    }
}

struct Parted(UnboundedReceiver<Result<ReplyPart>>, String);

#[async_trait]
impl Reply for Parted {
    async fn next(&mut self) -> Result<ReplyPart> {
        self.0.recv().await.unwrap_or_else(|| Err(broke_off()))
    }

    fn request(&self) -> Option<&str> {
        Some(&self.1)
    }
}

/// The format in which scripted models record what they read.
pub fn rendered(prompt: &Prompt) -> String {
    OllamaChatRenderer::new(ModelOptions::new("scripted")).render(prompt).body
}

#[async_trait]
impl LanguageModel for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    async fn limits(&self) -> Result<ModelLimits> {
        Ok(ModelLimits::window(4096).tools(self.calls.load(Ordering::Relaxed)))
    }

    async fn reply(&self, prompt: &Prompt) -> Result<Box<dyn Reply>> {
        let request = rendered(prompt);
        self.requests.lock().unwrap().push(request.clone());
        let answer = self.answers.lock().unwrap().pop_front().expect("an answer in the script");
        Ok(Box::new(Parted(answer?, request)))
    }

    async fn warm_up(&self, prompt: &Prompt) -> Result<()> {
        self.warmed.lock().unwrap().push(rendered(prompt));
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
        Self::with(|builder| builder).await
    }

    pub async fn with(build: impl FnOnce(ConversationBuilder) -> ConversationBuilder) -> Self {
        Self::over(options(), build).await
    }

    pub async fn over(
        options: StoreOptions,
        build: impl FnOnce(ConversationBuilder) -> ConversationBuilder,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn ConversationStore> =
            Arc::new(options.open(folder.path()).await.unwrap());
        let model = Arc::new(Scripted::default());
        let made =
            Conversation::builder(store.clone()).system("You are a voice.").model(model.clone());
        Self { conversation: build(made).build(), model, store, folder }
    }

    /// All stored messages: role, text, and why they were cut off.
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
