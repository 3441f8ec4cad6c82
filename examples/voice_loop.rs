//! A host's loop: every line of standard input is an utterance, and an echo stands in for the model.
//!
//! `printf 'Good morning\nWhat did I just say?\n' | cargo run --example voice_loop -- [FOLDER]`
#![allow(clippy::print_stdout)]

use std::path::PathBuf;
use std::sync::Arc;

use sottovoce::{
    Conversation, ConversationStore, EncryptionKey, LastNContextProvider, ModelOptions,
    OllamaChatRenderer, PromptBuilder, PromptRenderer, StoreOptions, SystemClock,
    SystemPromptProvider,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let temporary = tempfile::tempdir()?;
    let argument = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = argument.unwrap_or_else(|| temporary.path().join("conversation"));

    // A host that ships reads its secret from somewhere safe, or lets EncryptionKey::read_or_make_file keep one.
    let key = EncryptionKey::from_secret("only good enough for an example")?;
    let store: Arc<dyn ConversationStore> = Arc::new(StoreOptions::new(key).open(folder).await?);
    let clock = Arc::new(SystemClock);
    let system = SystemPromptProvider::new("You are a voice assistant. Answer in one sentence.");
    let builder = PromptBuilder::new(system, Arc::clone(store.scope()), clock.clone())
        .with(Arc::new(LastNContextProvider::in_blocks(Arc::clone(&store))));
    let conversation = Conversation::new(store, builder, clock, 6);
    let renderer = OllamaChatRenderer::new(ModelOptions::new("llama3.2:3b"));

    for line in std::io::stdin().lines() {
        let utterance = line?;
        if utterance.trim().is_empty() {
            continue;
        }
        let heard = conversation.hear(&utterance).await?;
        println!("{}", renderer.render(&heard.prompt).body);
        // Only a whole reply is kept: one that was cut off would mislead the next prompt.
        conversation.keep(format!("You said: {utterance}")).await?;
    }
    Ok(())
}
