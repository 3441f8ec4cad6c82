//! Writes a folder in the format of Elara's newest version: one file per message, sealed under a key string or plain.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;
use serde_json::{Value, json};
use sottovoce::admin::{PLACEHOLDER_KEY, Progress};
use sottovoce::export::{ExportRange, Exported};
use sottovoce::{ChatMessage, ChatRole, Error, FileConversationStore, Result};
use zeroize::Zeroizing;

use super::key::ElaraKey;
use crate::reader::blocking;
use crate::sink::NewFolder;

/// The highest counter. Above it, sorting names no longer sorts the messages.
const HIGHEST: u64 = 9999;

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Fields<'a> {
    role: String,
    content: &'a str,
    timestamp_utc: String,
    metadata: Option<&'a std::collections::BTreeMap<String, String>>,
}

/// Writes a conversation for Elara: a new folder with a file for each message, sealed under the key string, or plain
/// without one. Only their owner can read the files. Elara has no tools, so tool results and calls without text are
/// left out. Calls `progress` for each file.
///
/// # Errors
/// [`Error::NotPlain`] for a folder that is not empty. [`Error::EmptyKey`] or [`Error::PlaceholderKey`] for a key
/// string that protects nothing. [`Error::Io`] if a file cannot be written.
pub async fn export_for_elara(
    store: &FileConversationStore,
    range: ExportRange,
    folder: &Path,
    key: Option<&str>,
    progress: impl Fn(Progress) + Send + 'static,
) -> Result<Exported> {
    match key.map(str::trim) {
        Some("") => return Err(Error::EmptyKey),
        Some(PLACEHOLDER_KEY) => return Err(Error::PlaceholderKey),
        _ => {}
    }
    let (key, path) = (key.map(ElaraKey::from_secret), folder.to_owned());
    let folder = blocking(move || NewFolder::new(&path)).await?;
    let ((folder, mut done), skipped) = range
        .fold(store, (folder, Exported::default()), move |(folder, done), message, now| {
            let is_wordless_call = message.content.is_empty() && !message.tool_calls.is_empty();
            if message.role == ChatRole::Tool || is_wordless_call {
                done.left_out += 1;
                return Ok(());
            }
            folder.write(&name(&message, done.messages), &seal(&message, key.as_ref())?)?;
            done.messages += 1;
            progress(now);
            Ok(())
        })
        .await?;
    (done.conversations, done.skipped) = (1, skipped);
    if done.messages > 0 {
        blocking(move || folder.sync()).await?;
    }
    Ok(done)
}

fn name(message: &ChatMessage, before: u64) -> String {
    let time = message.timestamp.strftime("%Y%m%dT%H%M%S%3fZ");
    format!("{time}_{:04}_{}.json", before % HIGHEST + 1, message.role.as_str())
}

fn seal(message: &ChatMessage, key: Option<&ElaraKey>) -> Result<Zeroizing<Vec<u8>>> {
    let unwritable = |_| Error::InvalidMessage { reason: "it cannot be written as JSON" };
    let fields = Fields {
        role: message.role.to_string(),
        content: &message.content,
        timestamp_utc: message.timestamp.strftime("%Y-%m-%dT%H:%M:%S%.7f+00:00").to_string(),
        metadata: Some(&message.metadata).filter(|metadata| !metadata.is_empty()),
    };
    let envelope = match key {
        None => {
            let content = serde_json::to_value(&fields).map_err(unwritable)?;
            json!({ "Alg": "PLAINTEXT", "Iv": Value::Null, "Content": content, "Tag": Value::Null })
        }
        Some(key) => {
            let plaintext = Zeroizing::new(serde_json::to_vec(&fields).map_err(unwritable)?);
            let (iv, ciphertext, tag) = key.seal(&plaintext)?;
            json!({
                "Alg": "AES-256-GCM",
                "Iv": BASE64.encode(iv),
                "Content": BASE64.encode(ciphertext),
                "Tag": BASE64.encode(tag),
            })
        }
    };
    serde_json::to_vec(&envelope).map(Zeroizing::new).map_err(unwritable)
}
