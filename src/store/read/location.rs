//! Finds the file or pack that holds a message, and checks its seal there.

use crate::crypto::Envelope;
use crate::error::Result;
use crate::store::folder::pack::pack_lines::find;
use crate::store::folder::pack::{OpenedPack, Pack};
use crate::store::folder::{Folder, Opened};
use crate::store::record::finding::FindingKind;
use crate::store::record::layout::PACKS;
use crate::store::record::name::RecordName;

/// Where a message's record lies, as it was read from the disk a moment ago.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordLocation {
    /// The file in the conversation's folder: the record's own, or a pack.
    pub file: String,
    /// How many messages the pack holds; `None` for a file of its own.
    pub pack: Option<u64>,
    /// The size of the sealed record in bytes.
    pub bytes: u64,
    /// The id of the key that it is sealed under, if the record can be parsed.
    pub key_id: Option<String>,
    /// Why the record does not open there; `None` if its seal holds.
    pub broken: Option<FindingKind>,
}

/// The location of a record; `None` if it is not there any more.
pub(crate) fn locate(folder: &Folder, name: RecordName) -> Result<Option<RecordLocation>> {
    // A record moves from its file to a pack, so this order misses none.
    let file = name.to_string();
    if let Some(bytes) = folder.directory.read(&file)? {
        return read(folder, name, file, None, &bytes).map(Some);
    }
    for claimed in folder.list()?.packs {
        if !claimed.covers(name) {
            continue;
        }
        let OpenedPack::Pack(pack) = Pack::open(folder, claimed)? else { continue };
        if let Some(line) = find(&pack, name)? {
            let file = format!("{PACKS}/{claimed}");
            return read(folder, name, file, Some(claimed.count), line.file()).map(Some);
        }
    }
    Ok(None)
}

fn read(
    folder: &Folder,
    name: RecordName,
    file: String,
    pack: Option<u64>,
    bytes: &[u8],
) -> Result<RecordLocation> {
    let broken = match folder.open_bytes(name, bytes)? {
        Opened::Skipped(kind) => Some(kind),
        _ => None,
    };
    let key_id = Envelope::parse(bytes).ok().map(|envelope| envelope.key_id.to_owned());
    Ok(RecordLocation { file, pack, bytes: bytes.len() as u64, key_id, broken })
}

#[cfg(test)]
mod tests {
    use crate::crypto::EncryptionKey;
    use crate::message::{ChatMessage, ChatRole};
    use crate::store::{ConversationStore, StoreOptions};
    use jiff::Timestamp;

    #[tokio::test]
    async fn a_message_is_located_in_its_file_in_its_pack_and_nowhere_once_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions::new(EncryptionKey::generate().unwrap()).loose_files(2);
        let store = options.open(folder.path()).await.unwrap();
        let message = ChatMessage::at(ChatRole::User, "words", Timestamp::UNIX_EPOCH);
        let first = store.append_message(message.clone()).await.unwrap();
        let loose = store.locate(&first).await.unwrap().unwrap();
        assert_eq!((loose.file.as_str(), loose.pack), (first.file_name().as_str(), None));
        assert!(loose.broken.is_none() && loose.key_id.is_some() && loose.bytes > 100);
        for _ in 0..40 {
            store.append_message(message.clone()).await.unwrap();
        }
        store.pack(|_| {}).await.unwrap();
        let packed = store.locate(&first).await.unwrap().unwrap();
        assert!(packed.file.starts_with("packs/") && packed.pack.unwrap() > 1);
        assert_eq!((packed.broken, packed.bytes), (None, loose.bytes));
        store.forget(&[1..=1]).await.unwrap();
        assert_eq!(store.locate(&first).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_damaged_record_is_located_with_its_damage() {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions::new(EncryptionKey::generate().unwrap());
        let store = options.open(folder.path()).await.unwrap();
        let message = ChatMessage::at(ChatRole::User, "words", Timestamp::UNIX_EPOCH);
        let stored = store.append_message(message).await.unwrap();
        let path = folder.path().join(stored.file_name());
        let sealed = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, sealed.replace("\"tag\":\"", "\"tag\":\"AAAA")).unwrap();
        assert!(store.locate(&stored).await.unwrap().unwrap().broken.is_some());
    }
}
