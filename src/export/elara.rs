//! A folder as Elara's newest version writes it: one file a message, sealed under a key string or plain.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Serialize;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::{ExportRange, Exported, remove_hidden};
use crate::blob::{Blobs, fs::FsBlobs};
use crate::crypto::{ForeignKey, PLACEHOLDER_KEY};
use crate::error::{Error, Result};
use crate::message::{ChatMessage, ChatRole};
use crate::store::file_store::blocking;
use crate::store::read::dump;
use crate::store::read::dump::{Body, Record};
use crate::store::{FileConversationStore, Progress};

/// The highest counter: beyond it, Elara would sort its names otherwise than it means them.
const HIGHEST: u64 = 9999;

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Fields<'a> {
    role: String,
    content: &'a str,
    timestamp_utc: String,
    metadata: Option<&'a std::collections::BTreeMap<String, String>>,
}

/// Writes a conversation's messages into a new folder, each into a file of its own that only its owner can read, calling
/// `progress` as it goes: sealed under the key string, or in plain text where there is none. Elara knows no tools, so
/// their results and calls without words are left out.
///
/// # Errors
/// [`Error::NotPlain`] for a folder that holds something, [`Error::EmptyKey`] or
/// [`Error::PlaceholderKey`] for a key string that keeps nothing secret, and
/// [`Error::Io`] for what cannot be written.
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
    let (store, path) = (store.clone(), folder.to_owned());
    let key = key.map(ForeignKey::from_secret);
    blocking(move || write(&store, range, &path, key.as_ref(), &progress)).await
}

fn write(
    store: &FileConversationStore,
    range: ExportRange,
    path: &Path,
    key: Option<&ForeignKey>,
    progress: &dyn Fn(Progress),
) -> Result<Exported> {
    let folder = FsBlobs::new(path, &[])?;
    let mut is_empty = true;
    folder.list(&mut |_, _| is_empty = false)?;
    if !is_empty {
        return Err(Error::NotPlain { path: path.into(), found: "a folder that holds something" });
    }
    let reader = store.reader();
    let stats = remove_hidden(store)?;
    let total = usize::try_from(stats.message_count).unwrap_or(usize::MAX);
    let tail = reader.load(0)?;
    let mut done = Exported { conversations: 1, ..Exported::default() };
    done.skipped = dump::read(reader, &tail, range.part(), &mut |Record { body, .. }| {
        let Body::Message(message) = body else { return Ok(()) };
        let is_wordless_call = message.content.is_empty() && !message.tool_calls.is_empty();
        if message.role == ChatRole::Tool || is_wordless_call {
            done.left_out += 1;
            return Ok(());
        }
        let name = name(&message, done.messages);
        let bytes = seal(&message, key)?;
        if !folder.create(&name, &bytes)? {
            return Err(Error::NotPlain { path: path.join(name), found: "a file already" });
        }
        done.messages += 1;
        let now = usize::try_from(done.messages).unwrap_or(usize::MAX);
        progress(Progress { done: now, total: total.max(now) });
        Ok(())
    })?;
    if done.messages > 0 {
        folder.sync()?;
    }
    Ok(done)
}

fn name(message: &ChatMessage, before: u64) -> String {
    let time = message.timestamp.strftime("%Y%m%dT%H%M%S%3fZ");
    format!("{time}_{:04}_{}.json", before % HIGHEST + 1, message.role.as_str())
}

fn seal(message: &ChatMessage, key: Option<&ForeignKey>) -> Result<Zeroizing<Vec<u8>>> {
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
