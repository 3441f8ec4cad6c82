//! A host's own providers: an agent's documents stand behind the system prompt, and what other threads do stands beside
//! the utterance, since that changes from turn to turn.
//!
//! `cargo run --example documents_and_threads -- "How long still?"`
#![allow(clippy::print_stdout)]

use std::sync::Arc;

use async_trait::async_trait;
use sottovoce::context::{Context, ContextProvider, ContextRequest, Placement};
use sottovoce::model::{OllamaChatRenderer, PromptRenderer};
use sottovoce::{
    ChatMessage, ChatRole, Clock, Conversation, EncryptionKey, ModelOptions, Result, StoreOptions,
    SystemClock,
};

/// The documents of an agent, each with its title.
struct Documents(Vec<(&'static str, &'static str)>);

#[async_trait]
impl ContextProvider for Documents {
    fn placement(&self) -> Placement {
        Placement::Stable
    }

    async fn get_context(&self, request: &ContextRequest<'_>) -> Result<Context> {
        let notes = self.0.iter().map(|(title, text)| note(request, format!("{title}:\n{text}")));
        Ok(Context::new(notes.collect(), "a document of the agent"))
    }
}

/// The threads that are open, each with its subject.
struct Threads(Vec<(&'static str, &'static str)>);

#[async_trait]
impl ContextProvider for Threads {
    fn placement(&self) -> Placement {
        Placement::NewestTurn
    }

    async fn get_context(&self, request: &ContextRequest<'_>) -> Result<Context> {
        let others = self.0.iter().filter(|(id, _)| request.thread != Some(id));
        let notes = others.map(|(id, about)| note(request, format!("thread {id}: {about}")));
        Ok(Context::new(notes.collect(), "another thread"))
    }
}

fn note(request: &ContextRequest<'_>, text: String) -> sottovoce::context::ContextMessage {
    let now = request.now.unwrap_or_else(|| SystemClock.now().timestamp());
    ChatMessage::at(ChatRole::System, text, now).into()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let question = std::env::args().nth(1).unwrap_or_else(|| "How long still?".into());
    let key = EncryptionKey::from_secret("only good enough for an example")?;
    let talk = Conversation::builder(Arc::new(StoreOptions::new(key).open_in_memory().await?))
        .context(Documents(vec![("house.md", "The kitchen has two lights.")]))
        .context(Threads(vec![("1", "Egg timer"), ("2", "Shopping list")]))
        .build();
    let (prompt, _) = talk.in_thread("1").prompt(question.as_str()).await?;
    let rendered = OllamaChatRenderer::new(ModelOptions::new("llama3.2")).render(&prompt);
    println!("{}", rendered.body);
    Ok(())
}
