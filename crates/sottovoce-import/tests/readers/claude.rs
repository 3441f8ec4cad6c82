//! Imports of Claude's data export, plain and zipped. The conversations are invented.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sottovoce::import::ImportedConversations;
use sottovoce::{ChatRole, Error, Scope};
use sottovoce_import::{ChatExport, Reader};
use zip::write::SimpleFileOptions;

fn message(id: &str, parent: Option<&str>, sender: &str, text: &str) -> Value {
    json!({
        "uuid": id, "parent_message_uuid": parent, "sender": sender, "text": text,
        "content": [{"type": "text", "text": text, "citations": []}],
        "created_at": "2026-01-02T03:04:05.123456Z", "updated_at": "2026-01-02T03:04:05.123456Z",
        "attachments": [], "files": [],
    })
}

fn export() -> Value {
    const ROOT: &str = "00000000-0000-4000-8000-000000000000";
    let mut thinking = message("a2", Some("q2"), "assistant", "It rises in four hours.");
    thinking["content"]
        .as_array_mut()
        .unwrap()
        .insert(0, json!({"type": "thinking", "thinking": "canary"}));
    thinking["created_at"] = json!("2026-01-02T03:05:00Z");
    let mut with_file = message("q2", Some("a1"), "human", "When will it rise?");
    with_file["files"] = json!([{"file_name": "dough.jpg"}]);
    let mut empty = message("q3", Some("a2"), "human", "");
    empty["content"] = json!([]);
    json!([
        {
            "uuid": "6f0a3c1e-1111-4aaa-8bbb-000000000001", "name": "Bread", "summary": "",
            "created_at": "2026-01-02T03:00:00Z", "updated_at": "2026-01-02T03:05:00Z",
            "account": {"uuid": "x"},
            "chat_messages": [
                message("q1", Some(ROOT), "human", "How long should the dough rest?"),
                message("other", Some("q1"), "assistant", "An hour."),
                message("a1", Some("q1"), "assistant", "Four hours."),
                with_file, thinking, empty,
            ],
        },
        {
            "uuid": "6f0a3c1e-2222-4aaa-8bbb-000000000002", "name": "", "created_at": "2025-06-02T03:00:00Z",
            "chat_messages": [
                {"uuid": "o1", "sender": "human", "text": "Guten Morgen", "created_at": "2025-06-02T03:00:01Z"},
                {"uuid": "o2", "sender": "assistant", "text": "Morgen!"},
            ],
        },
        {"uuid": "6f0a3c1e-3333-4aaa-8bbb-000000000003", "name": "", "created_at": null, "chat_messages": []},
        {"title": "of another program", "mapping": {}},
    ])
}

/// A zip that holds these files.
fn zipped(folder: &Path, files: &[(&str, &str)]) -> PathBuf {
    let path = folder.join("data-2026.zip");
    let mut zip = zip::ZipWriter::new(File::create(&path).unwrap());
    for (name, text) in files {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap();
    path
}

async fn read(path: &Path) -> ImportedConversations {
    ChatExport::claude(path).read(|_| {}).await.unwrap()
}

#[tokio::test]
async fn the_branch_of_the_last_message_is_read_in_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("conversations.json");
    std::fs::write(&path, export().to_string()).unwrap();
    for given in [&path, folder.path()] {
        let found = read(given).await;
        assert_eq!((found.conversations.len(), found.refused.len()), (3, 1));
        let id = |id: &str| Scope::Named { id: id.into() };
        let of = |scope: Scope| found.conversations.iter().find(|one| one.scope == scope).unwrap();
        let bread = of(id("6f0a3c1e-1111-4aaa-8bbb-000000000001"));
        let said =
            bread.messages.messages.iter().map(|one| (one.message.role, &*one.message.content));
        assert_eq!(
            said.collect::<Vec<_>>(),
            [
                (ChatRole::User, "How long should the dough rest?"),
                (ChatRole::Assistant, "Four hours."),
                (ChatRole::User, "When will it rise?"),
                (ChatRole::Assistant, "It rises in four hours."),
            ]
        );
        // Another answer, a thought, a picture, and a message without words.
        assert_eq!(bread.messages.passed_over.total(), 4);
        assert_eq!(bread.facts.title.as_deref(), Some("Bread"));
        let older = of(id("6f0a3c1e-2222-4aaa-8bbb-000000000002"));
        let times = older.messages.messages.iter().map(|one| one.message.timestamp.as_second());
        assert_eq!(times.collect::<Vec<_>>(), [1_748_833_201; 2]);
    }
}

#[tokio::test]
async fn a_zip_is_read_as_the_folder_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let text = export().to_string();
    for name in ["conversations.json", "data/conversations-000.json"] {
        let path = zipped(folder.path(), &[("users.json", "[]"), (name, &text)]);
        let found = read(&path).await;
        assert_eq!((found.conversations.len(), found.refused.len()), (3, 1), "{name}");
        assert!(found.refused[0].to_string().contains(name), "{}", found.refused[0]);
    }
    let chat = json!({"messages": [{"role": "user", "content": "Hello"}]}).to_string();
    let path = zipped(folder.path(), &[("conversations.json", &chat)]);
    assert_eq!(ChatExport::openai(&path).read(|_| {}).await.unwrap().conversations.len(), 1);
}

#[tokio::test]
async fn a_zip_that_is_too_large_cut_off_or_of_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = zipped(folder.path(), &[("photos/cat.json", "[]")]);
    assert!(matches!(ChatExport::claude(&path).read(|_| {}).await, Err(Error::Io { .. })));
    let path = zipped(folder.path(), &[("conversations.json", &export().to_string())]);
    let whole = std::fs::read(&path).unwrap();
    // Where the zip says how large a file is that it holds.
    let listed = whole.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
    for (size, why) in [(u32::MAX - 1, "over 1 GiB"), (17, "damaged in the zip")] {
        let mut other = whole.clone();
        other[listed + 24..listed + 28].copy_from_slice(&size.to_le_bytes());
        std::fs::write(&path, other).unwrap();
        let refused = ChatExport::claude(&path).read(|_| {}).await.unwrap_err();
        assert!(refused.to_string().contains(why), "{refused}");
    }
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let refused = ChatExport::claude(&path).read(|_| {}).await.unwrap_err();
    assert!(refused.to_string().contains("cut off"), "{refused}");
}
