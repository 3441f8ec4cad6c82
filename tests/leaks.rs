//! Leak test: one sentence goes through the whole store, and must not appear in files, logs or errors.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::string_slice,
    reason = "these are tests"
)]

mod common;
#[path = "common/log.rs"]
mod log;

use std::error::Error as _;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use common::*;
use log::Log;
use sottovoce::context::{Context, ContextMessage, ContextRequest, LastNContextProvider};
use sottovoce::model::{OllamaChatRenderer, PromptRenderer};
use sottovoce::prompt::Utterance;
use sottovoce::store::Document;
use sottovoce::{
    ChatMessage, ChatRole, Conversation, ConversationStore, EncryptionKey, Error, ModelOptions,
    Scope, StoreOptions, ToolCall,
};

const CANARY: &str = "the yellow canary sings at 4:17 behind the pantry door";
const SECRET: &str = "the key that opens the canary's cage, and nothing else";
/// The decoy that the search must find.
const DECOY: &str = "a decoy that the search has to find wherever it sits";

/// The forms in which a text may appear: plain, in hex, and in base64 at any offset.
fn forms(words: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![words.as_bytes().to_vec()];
    // A part of the text counts as a leak too.
    let middle = words.len() / 2;
    forms.push(words.as_bytes()[..middle].to_vec());
    forms.push(words.as_bytes()[middle..].to_vec());
    let hex: String = words.bytes().map(|byte| format!("{byte:02x}")).collect();
    forms.extend([hex.to_uppercase().into_bytes(), hex.into_bytes()]);
    for before in 0..3 {
        let shifted = [&vec![0; before][..], words.as_bytes()].concat();
        for alphabet in [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
            let encoded = alphabet.encode(&shifted).into_bytes();
            // The first and last groups contain bits of neighbouring text.
            forms.push(encoded[4..encoded.len() - 4].to_vec());
        }
    }
    forms
}

fn holds(haystack: &[u8], words: &str) -> bool {
    forms(words).iter().any(|form| haystack.windows(form.len()).any(|window| window == form))
}

/// A file's bytes, and the decoded bytes of every base64 value in it except the sealed one.
fn layers(bytes: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut values = text.split('"').collect::<Vec<_>>();
    if let Some(at) = values.iter().position(|value| *value == "ciphertext") {
        values.remove(at + 2);
    }
    let decoded = values.into_iter().filter_map(|value| STANDARD.decode(value).ok());
    std::iter::once(bytes.to_vec()).chain(decoded).collect()
}

/// The files below a folder whose bytes or names contain the text.
fn files_with(folder: &Path, words: &str) -> Vec<PathBuf> {
    snapshot(folder)
        .into_iter()
        .filter(|(path, (bytes, ..))| {
            holds(path.as_os_str().as_encoded_bytes(), words)
                || layers(bytes).iter().any(|layer| holds(layer, words))
        })
        .map(|(path, _)| path)
        .collect()
}

#[test]
fn the_search_finds_what_is_planted() {
    let folder = tempfile::tempdir().unwrap();
    let hex: String = DECOY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let base64 = |before: &str| STANDARD.encode(format!("{before}{DECOY} and more"));
    let plants = [
        DECOY.to_owned(),
        format!("before {DECOY} after"),
        hex.to_uppercase(),
        format!("0{hex}"),
        base64(""),
        base64("1"),
        base64("12"),
        URL_SAFE_NO_PAD.encode(format!("\u{3ff}{DECOY}")),
        format!(r#"{{"iv":"{}","ciphertext":"AAAA"}}"#, STANDARD.encode(DECOY)),
        DECOY[..DECOY.len() / 2].to_owned(),
    ];
    for plant in &plants {
        let path = folder.path().join("below");
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("file"), plant).unwrap();
        assert_eq!(files_with(folder.path(), DECOY), [path.join("file")], "{plant}");
    }
    std::fs::write(folder.path().join("below/file"), "nothing").unwrap();
    assert!(files_with(folder.path(), DECOY).is_empty());
    std::fs::write(folder.path().join(DECOY), "").unwrap();
    assert_eq!(files_with(folder.path(), DECOY).len(), 1);

    let log = Log::of_this_process();
    assert!(!holds(&log.bytes(), DECOY));
    std::thread::spawn(|| tracing::trace!(words = DECOY, "planted")).join().unwrap();
    assert!(holds(&log.bytes(), DECOY));
}

fn message() -> ChatMessage {
    let mut message = said(CANARY).with_metadata("note", CANARY).with_metadata(CANARY, "key");
    message.thread_id = Some(CANARY.into());
    message.tool_call_id = Some(CANARY.into());
    message.tool_calls = vec![ToolCall {
        id: CANARY.into(),
        name: CANARY.into(),
        arguments: serde_json::json!({ CANARY: [CANARY] }),
    }];
    message
}

/// Texts of values and errors: everything that may end up in a log.
#[derive(Default)]
struct Texts(Vec<(String, String)>);

impl Texts {
    fn shown(&mut self, of: &str, value: &impl Debug) {
        self.0.push((of.into(), format!("{value:?} {value:#?}")));
    }

    fn error(&mut self, of: &str, error: &Error) {
        self.shown(of, error);
        self.0.push((of.into(), format!("{error} {}", error.help())));
        let mut source = error.source();
        while let Some(cause) = source {
            self.0.push((of.into(), format!("{cause} {cause:?}")));
            source = cause.source();
        }
    }
}

fn canary_key() -> EncryptionKey {
    EncryptionKey::from_secret(SECRET).unwrap()
}

/// Passes the canary through everything that handles text, in a folder, and collects the output.
async fn sing(root: &Path) -> Texts {
    let mut texts = Texts::default();
    let key = canary_key();
    texts.shown("key", &key);
    let options = StoreOptions::new(key).also_with(EncryptionKey::generate().unwrap());
    texts.shown("options", &options);
    let store = options.open(root).await.unwrap();

    let stored = store.append_message(message()).await.unwrap();
    store.append_all(vec![message(); 3]).await.unwrap();
    texts.shown("store", &store);
    texts.shown("stored message", &stored);
    texts.shown("message", &message());
    texts.shown("tool call", &message().tool_calls[0]);
    let reading = store.read_tail(9).await.unwrap();
    assert!(reading.messages[0].message == message());
    texts.shown("reading", &reading);
    texts.shown("forgotten", &store.forget(&[2..=2]).await.unwrap());

    let shared: Arc<dyn ConversationStore> = Arc::new(store.clone());
    let builder = Conversation::builder(shared.clone())
        .system(CANARY)
        .history(LastNContextProvider::new())
        .hint("hint", CANARY)
        .budget(10_000);
    texts.shown("builder", &builder);
    let conversation = builder.last_n(8).build();
    texts.shown("conversation", &conversation);
    let heard = conversation.prepare_turn(CANARY).await.unwrap();
    texts.shown("heard", &heard);
    texts.0.push(("receipt".into(), serde_json::to_string(&heard.receipt).unwrap()));
    assert!(heard.prompt.user_input.content == CANARY);
    let request = OllamaChatRenderer::new(ModelOptions::new("model")).render(&heard.prompt);
    assert!(request.body.contains(CANARY));
    texts.shown("request", &request);
    texts.shown("turn", &Utterance::from(CANARY));
    texts.shown("stored turn", &Utterance::from(stored));
    texts.shown("context request", &ContextRequest::new(conversation.store(), CANARY, 3));
    let supplied = ContextMessage::from(message());
    texts.shown("context message", &supplied);
    texts.shown("context", &Context::new(vec![supplied], "because"));

    let mut provoke = async |of: &str, outcome: Result<(), Error>| {
        texts.error(of, &outcome.expect_err(of));
    };
    let small = StoreOptions::new(canary_key()).max_message_bytes(100).open(root).await.unwrap();
    provoke("too large", small.append_message(message()).await.map(|_| ())).await;
    let mut future = message();
    future.timestamp = "9999-01-01T00:00:00Z".parse().unwrap();
    provoke("from the future", store.append_message(future.clone()).await.map(|_| ())).await;
    future.timestamp = jiff::Timestamp::MIN;
    provoke("before the year 0", store.append_message(future).await.map(|_| ())).await;
    provoke("wrong key", options_of_another().open(root).await.map(|_| ())).await;
    provoke("not a role", CANARY.parse::<ChatRole>().map(|_| ())).await;
    let key_file = root.with_extension("key");
    std::fs::write(&key_file, SECRET).unwrap();
    provoke("no key file", EncryptionKey::read_file(&key_file).map(|_| ())).await;
    std::fs::remove_file(key_file).unwrap();

    // The same in packs, with a document, and with a damaged pack.
    let packing =
        || StoreOptions::new(canary_key()).scope(Scope::Dm { user: "42".into() }).loose_files(1);
    let packed = packing().open(root).await.unwrap();
    for _ in 0..9 {
        packed.append_message(message()).await.unwrap();
    }
    packed.append_all(vec![message(); 9]).await.unwrap();
    texts.shown("packed and forgotten", &packed.forget(&[2..=2, 12..=12]).await.unwrap());
    packed.write_document(Document::Calibration, CANARY.as_bytes()).await.unwrap();
    let folder = root.join("dms/42/packs");
    let packs: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(packs.len() > 2);
    for (at, pack) in packs.iter().enumerate() {
        let mut bytes = std::fs::read(pack).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        bytes.truncate(bytes.len() - at % 2);
        std::fs::write(pack, bytes).unwrap();
    }
    let packed = packing().open(root).await.unwrap();
    texts.shown("damaged packs", &packed.read_tail(99).await.unwrap());
    texts.shown("range of damaged packs", &packed.read_seqs(1..=99).await.unwrap());
    texts.shown("report of damaged packs", &packed.verify(|_| {}).await.unwrap());
    for _ in 0..9 {
        packed.append_message(message()).await.unwrap();
    }

    // A cut record, a flipped one, and one under another name: each is reported without its text.
    let paths = records(root);
    let bytes = std::fs::read(&paths[0]).unwrap();
    std::fs::write(&paths[0], &bytes[..bytes.len() / 2]).unwrap();
    let mut bytes = std::fs::read(&paths[1]).unwrap();
    bytes[200] ^= 1;
    std::fs::write(&paths[1], bytes).unwrap();
    std::fs::copy(&paths[2], root.join("20250824T163625123Z_0999_user.json")).unwrap();
    let damaged = StoreOptions::new(canary_key()).open(root).await.unwrap();
    let reading = damaged.read_tail(99).await.unwrap();
    assert!(reading.skipped.len() >= 3);
    texts.shown("damaged reading", &reading);
    let report = damaged.verify(|_| {}).await.unwrap();
    texts.shown("report", &report);
    for finding in &report.findings {
        texts.0.push(("finding".into(), finding.to_string()));
        texts.0.push(("finding".into(), serde_json::to_string(finding).unwrap()));
    }

    // An append that fails because the folder is gone.
    std::fs::rename(root, root.with_extension("away")).unwrap();
    let failed = store.append_message(message()).await.unwrap_err();
    texts.error("folder replaced", &failed);
    std::fs::rename(root.with_extension("away"), root).unwrap();
    texts
}

fn options_of_another() -> StoreOptions {
    options()
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn a_process_in_which_the_canary_sings() {
    let Some(folder) = child_folder() else { return };
    let log = Log::of_this_process();
    tracing::trace!("the log is being written");
    let texts = block_on(sing(&folder.join("root")));
    assert!(texts.0.len() > 40, "{}", texts.0.len());
    let logged = log.bytes();
    assert!(logged.starts_with(b"2") && logged.windows(7).any(|w| w == b"written"));
    for words in [CANARY, SECRET] {
        for (of, text) in &texts.0 {
            assert!(!holds(text.as_bytes(), words), "{of} shows it");
        }
        assert!(!holds(&logged, words), "the log shows it");
    }
    // The bytes of the key are as secret as the text that they come from.
    let digits = canary_key().to_hex().unwrap();
    let digits = digits.trim_end();
    for (of, text) in &texts.0 {
        assert!(!text.to_lowercase().contains(digits), "{of} shows the key");
    }
}

#[test]
fn a_sentence_that_is_stored_is_in_no_file_name_log_error_or_debug_output() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut process = child("a_process_in_which_the_canary_sings", folder.path());
    let output = process.env("TMPDIR", &temporary).env("HOME", &temporary).output().unwrap();
    let printed = [&output.stdout[..], &output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&printed));
    assert!(printed.windows(8).any(|window| window == b"1 passed"));

    let root = folder.path().join("root");
    assert!(records(&root).len() >= 5, "the sentence was not even stored");
    for words in [CANARY, SECRET] {
        assert!(!holds(&printed, words), "it was printed");
        assert!(files_with(folder.path(), words).is_empty());
    }
    let key: Vec<u8> = {
        let digits = canary_key().to_hex().unwrap();
        let pair = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        (0..64).step_by(2).map(pair).collect()
    };
    for (path, (bytes, ..)) in snapshot(folder.path()) {
        for layer in layers(&bytes) {
            assert!(!layer.windows(32).any(|window| window == key), "{path:?} holds the key");
        }
    }
}
