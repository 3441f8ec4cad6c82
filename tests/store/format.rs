//! FORMAT.md matches the code.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::Command;

use sottovoce::*;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The fenced blocks of FORMAT.md in one language.
fn blocks(language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(here().join("FORMAT.md")).unwrap();
    text.split(&format!("```{language}\n"))
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn the_example_opens_by_the_rules_on_its_page() {
    let [vault, envelope, record] = <[String; 3]>::try_from(blocks("json")).unwrap();
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("dms/42");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(root.path().join("vault"), vault).unwrap();
    std::fs::write(folder.join("20250824T163625123Z_0001_user.json"), envelope).unwrap();

    let key = EncryptionKey::from_secret("test key, not secret").unwrap();
    let scope = Scope::Dm { user: "42".into() };
    let store = StoreOptions::new(key).scope(scope).open(root.path()).await.unwrap();
    let found = store.read_tail(1).await.unwrap();
    assert_eq!(serde_json::to_string(&found.messages[0].message).unwrap(), record.trim_end());
}

#[test]
fn the_python_reader_reads_a_store() {
    let has_cryptography = |python: &str| {
        let probe = Command::new(python)
            .args(["-c", "from cryptography.hazmat.primitives.kdf.argon2 import Argon2id"])
            .output();
        probe.is_ok_and(|output| output.status.success())
    };
    let Some(python) = ["python3", "python"].into_iter().find(|python| has_cryptography(python))
    else {
        eprintln!("SKIPPED: there is no Python with the package `cryptography`, 44 or newer");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let script: PathBuf = folder.path().join("reader.py");
    std::fs::write(&script, &blocks("python")[0]).unwrap();
    let read_in = |store: &Path, folder: &str, secret: &str, scope: &str| {
        let output = Command::new(python)
            .arg(&script)
            .args([store.join(folder), store.join("vault")])
            .arg(secret)
            .args(scope.split('/'))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let read = |store: &Path, secret: &str| read_in(store, "", secret, "default");

    for name in ["store-v1", "store-v1-packs"] {
        let fixtures = here().join("tests/fixtures");
        let expected = fixtures.join(format!("{name}.expected.jsonl"));
        let expected = std::fs::read_to_string(expected).unwrap();
        let expected: Vec<String> =
            expected.lines().map(|line| format!("{{{}", line.split_once(',').unwrap().1)).collect();
        let printed = read(&fixtures.join(name), "test key, not secret");
        let found: Vec<&str> = printed.lines().filter(|line| !line.contains("erased")).collect();
        assert_eq!(found, expected, "{name}");
    }

    // The golden home of format 1: the default conversation, and one whose messages are in a pack.
    let whole = here().join("tests/fixtures/v1/whole");
    let said = std::fs::read_to_string(here().join("tests/fixtures/v1/said.json")).unwrap();
    let said: Vec<serde_json::Value> = serde_json::from_str(&said).unwrap();
    for (scope, folder) in [("default", ""), ("named/kitchen", "conversations/kitchen")] {
        let of_scope =
            |said: &&serde_json::Value| said["command"][1] == scope && said["command"][2] == "tail";
        let expected = said.iter().find(of_scope).unwrap()["printed"].as_str().unwrap();
        let content = |line: &str| {
            let message: serde_json::Value = serde_json::from_str(line).unwrap();
            message["content"].as_str().map(str::to_owned)
        };
        let expected: Vec<_> = expected.lines().filter_map(content).collect();
        let printed = read_in(&whole, folder, "test key, not secret", scope);
        let found: Vec<_> = printed.lines().filter_map(content).collect();
        assert_eq!(found, expected, "{scope}");
    }

    let key = EncryptionKey::generate().unwrap();
    let text = key.to_hex().unwrap();
    let store = folder.path().join("store");
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        let store = StoreOptions::new(key).open(&store).await.unwrap();
        let time = "2025-08-24T16:36:25Z".parse().unwrap();
        store.append_message(ChatMessage::at(ChatRole::User, "by key file", time)).await.unwrap();
    });
    assert!(read(&store, text.trim_end()).contains("by key file"));

    let words = "correct horse battery stäple";
    let key = EncryptionKey::from_passphrase(words.to_owned()).unwrap();
    let store = folder.path().join("store of a passphrase");
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        let store = StoreOptions::new(key).open(&store).await.unwrap();
        let time = "2025-08-24T16:36:25Z".parse().unwrap();
        let message = ChatMessage::at(ChatRole::User, "by passphrase", time);
        store.append_message(message).await.unwrap();
    });
    assert!(read(&store, words).contains("by passphrase"));
}
