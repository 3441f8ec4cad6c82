//! Exports for Elara, read as Elara reads them.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sottovoce::export::ExportRange;
use sottovoce::{
    ChatMessage, ChatRole, ConversationStore, Error, FileConversationStore, StoredMessage, ToolCall,
};
use sottovoce_import::{ElaraFolder, Reader, export_for_elara};

use crate::common::{block_on, open};

fn start() -> Timestamp {
    "2025-08-24T16:00:00Z".parse().unwrap()
}

async fn all(store: &FileConversationStore) -> Vec<(u64, String, ChatMessage)> {
    let reading = store.read_tail(usize::MAX).await.unwrap();
    assert!(reading.skipped.is_empty());
    let row = |m: &Arc<StoredMessage>| (m.seq, m.file_name(), m.message.clone());
    reading.messages.iter().map(row).collect()
}

/// 40 messages, after others were forgotten.
async fn rich(root: &Path) -> FileConversationStore {
    let store = open(root).await;
    for n in 0..44i64 {
        let role = if n % 2 == 0 { ChatRole::User } else { ChatRole::Assistant };
        let at = start() + SignedDuration::from_mins(n) + SignedDuration::from_nanos(n * 100);
        let mut message = ChatMessage::at(role, format!("words {n} é\u{1}\n👩‍👩‍👧‍👦"), at);
        message.thread_id = (n % 5 == 0).then(|| "7".into());
        message.offset_minutes = (n % 3 == 0).then_some(120);
        if n == 21 {
            message.tool_calls = vec![ToolCall {
                id: "c".into(),
                name: "light".into(),
                arguments: serde_json::json!({"on": [1.5, null]}),
            }];
        }
        store.append_message(message.with_metadata("lang", "en")).await.unwrap();
    }
    store.forget(&[3..=4, 9..=9]).await.unwrap();
    store.forget(&[30..=30]).await.unwrap();
    store
}

#[test]
fn what_is_exported_for_elara_is_what_elara_reads() {
    block_on(async {
        let (root, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = rich(root.path()).await;
        store
            .append_message(ChatMessage::at(
                ChatRole::Tool,
                "result",
                start() + SignedDuration::from_hours(2),
            ))
            .await
            .unwrap();
        for (key, form) in [(Some("test-key"), "v2"), (None, "plaintext")] {
            let folder = out.path().join(form);
            let exported = export_for_elara(&store, ExportRange::default(), &folder, key, |_| {})
                .await
                .unwrap();
            assert_eq!((exported.messages, exported.left_out), (40, 1));
            let imported = ElaraFolder::new(&folder).key("test-key").read(|_| {}).await.unwrap();
            assert!(imported.refused.is_empty());
            assert!(imported.messages.iter().all(|message| message.form == form));
            let theirs: Vec<_> = imported
                .messages
                .iter()
                .map(|m| {
                    (
                        m.message.role,
                        m.message.content.clone(),
                        m.message.timestamp,
                        m.message.metadata.clone(),
                    )
                })
                .collect();
            let mut ours: Vec<_> = all(&store)
                .await
                .into_iter()
                .filter(|(_, _, m)| m.role != ChatRole::Tool)
                .map(|(_, _, m)| (m.role, m.content.clone(), m.timestamp, m.metadata.clone()))
                .collect();
            ours.sort_by_key(|(_, _, at, _)| *at);
            assert_eq!(theirs, ours);
            let again =
                export_for_elara(&store, ExportRange::default(), &folder, key, |_| {}).await;
            assert!(matches!(again, Err(Error::NotPlain { .. })), "nothing is mixed");
        }
        let refused = export_for_elara(
            &store,
            ExportRange::default(),
            &out.path().join("x"),
            Some(" "),
            |_| {},
        )
        .await;
        assert!(matches!(refused, Err(Error::EmptyKey)));
    });
}
