//! A host's loop: every line of standard input is an utterance, and every sentence of the answer is "spoken".
//!
//! `printf 'Good morning\nWhat did I just say?\n' | cargo run --example voice_loop -- llama3.2 [FOLDER]`
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sottovoce::{
    AnswerEvent, Conversation, EncryptionKey, ModelOptions, Ollama, OllamaModel, StoreOptions,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let model = arguments
        .next()
        .map_or_else(|| "llama3.2".into(), |name| name.to_string_lossy().into_owned());
    let temporary = tempfile::tempdir()?;
    let folder =
        arguments.next().map_or_else(|| temporary.path().join("conversation"), PathBuf::from);

    // A host that ships reads its secret from somewhere safe, or lets EncryptionKey::read_or_make_file keep one.
    let key = EncryptionKey::from_secret("only good enough for an example")?;
    let store = StoreOptions::new(key).open(folder).await?;
    let mut options = ModelOptions::new(model);
    options.num_ctx = Some(4096);
    options.num_predict = Some(256);
    let server = Ollama::new("http://127.0.0.1:11434", Duration::from_secs(120))?;
    let conversation = Conversation::builder(Arc::new(store))
        .system("You are a voice assistant. Answer in one sentence.")
        .model(OllamaModel::new(server, options))
        .build();

    for line in std::io::stdin().lines() {
        let utterance = line?;
        if utterance.trim().is_empty() {
            continue;
        }
        let mut sentences = conversation.ask(&utterance).await?.sentences();
        while let Some(piece) = sentences.next().await {
            match piece {
                // A voice would read it here. A host that hears someone speak meanwhile drops `sentences`.
                Ok(AnswerEvent::Text(sentence)) => println!("{}", sentence.trim_end()),
                Ok(_) => {}
                Err(error) => eprintln!("{error}: {}", error.help()),
            }
        }
    }
    conversation.close().await?;
    Ok(())
}
