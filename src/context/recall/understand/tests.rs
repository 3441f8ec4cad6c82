use super::*;
use crate::EncryptionKey;
use crate::context::recall::RecallQuery;
use crate::message::{ChatMessage, ChatRole};
use crate::store::{ConversationStore, StoreBackend, StoreOptions};

#[tokio::test]
async fn what_is_forgotten_while_the_next_message_is_encoded_leaves_nothing_in_its_meaning() {
    let folder = tempfile::tempdir().unwrap();
    let key = EncryptionKey::from_secret("a secret of the tests").unwrap();
    let store = Arc::new(StoreOptions::new(key).open(folder.path()).await.unwrap());
    let now = store.clock().now();
    for text in ["The code is 4711.", "Of the garage.", "Thank you."] {
        store.append_message(ChatMessage::new(ChatRole::User, text, &now)).await.unwrap();
    }
    let recall = Recall::new(Arc::clone(&store) as Arc<dyn ConversationStore>);
    let (removals, wanted) = recall.without_meaning(9, &HashSet::new()).await.unwrap();
    let mut meanings = HashMap::new();
    for (seq, passages) in wanted {
        meanings.insert(seq, recall.encode(seq, passages).await.unwrap().unwrap());
    }
    store.forget(&[1..=1]).await.unwrap();
    // A question brings the index up to date, so that nothing later tells it of the forgetting.
    recall.find_in(&RecallQuery::new("Which code?", now, 5), None).await.unwrap();
    recall.keep(removals, &meanings).await;
    assert_eq!(recall.understood().await.unwrap().known, 0);
    assert_eq!(recall.understand(9).await.unwrap(), 2);
    assert_eq!(recall.understood().await.unwrap().known, 2);
}
