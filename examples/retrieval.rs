//! A host's own search: notes are ranked by a toy embedder, and the best of them join the utterance.
//!
//! `cargo run --example retrieval -- "When do the bins go out?"`
#![allow(clippy::print_stdout)]

use std::sync::Arc;

use async_trait::async_trait;
use sottovoce::context::{ContextMessage, Embedder, Query, RetrievalContextProvider, Retriever};
use sottovoce::model::{OllamaChatRenderer, PromptRenderer};
use sottovoce::{
    ChatMessage, ChatRole, Clock, Conversation, EncryptionKey, ModelOptions, Result, StoreOptions,
    SystemClock,
};

const NOTES: [&str; 4] = [
    "Bins go out on Thursday evening.",
    "Grandmother's birthday is the third of May.",
    "The wifi password is on the fridge.",
    "Coffee beans: half a kilo, dark roast.",
];

/// Counts letters. A real one asks a model for vectors of meaning.
struct BagOfLetters;

#[async_trait]
impl Embedder for BagOfLetters {
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        Ok(texts.iter().map(|text| counts(&text.to_lowercase())).collect())
    }
}

fn counts(text: &str) -> Vec<f32> {
    let count = |letter| text.chars().filter(|&c| c == letter).map(|_| 1.0).sum();
    let counts: Vec<f32> = ('a'..='z').map(count).collect();
    let length = dot(&counts, &counts).sqrt().max(1.0);
    counts.iter().map(|count| count / length).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

struct Notes(Vec<(ContextMessage, Vec<f32>)>);

#[async_trait]
impl Retriever for Notes {
    async fn retrieve(&self, query: &Query<'_>) -> Result<Vec<ContextMessage>> {
        let wanted = query.embedding.unwrap_or_default();
        let mut ranked: Vec<_> = self.0.iter().map(|(note, at)| (dot(at, wanted), note)).collect();
        ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        Ok(ranked.into_iter().take(query.limit).map(|(_, note)| note.clone()).collect())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let utterance = std::env::args().nth(1).unwrap_or_else(|| "When do the bins go out?".into());
    let now = SystemClock.now();
    // Snippets that nobody said are the host's, so they carry its role.
    let notes = NOTES.map(|note| ChatMessage::new(ChatRole::System, note, &now).into());
    let notes = Notes(notes.into_iter().zip(BagOfLetters.embed(&NOTES).await?).collect());

    let retrieval = RetrievalContextProvider::new(Arc::new(notes), 2);
    let key = EncryptionKey::from_secret("only good enough for an example")?;
    let store = Arc::new(StoreOptions::new(key).open_in_memory().await?);
    let conversation = Conversation::builder(store)
        .system("You are a voice assistant. Answer in one sentence.")
        .context(retrieval.embedding_with(Arc::new(BagOfLetters)))
        .build();

    let (prompt, receipt) = conversation.prompt(utterance.as_str()).await?;
    println!("{}", OllamaChatRenderer::new(ModelOptions::new("llama3.2:3b")).render(&prompt).body);
    println!("{}", serde_json::to_string_pretty(&receipt)?);
    Ok(())
}
