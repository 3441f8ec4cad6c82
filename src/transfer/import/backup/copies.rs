//! Messages of an export that are copies of others, restored from snapshots: each names its original by number, and numbers
//! here are others.

use std::collections::HashMap;

use crate::error::Result;
use crate::message::RESTORED_FROM;
use crate::store::FileConversationStore;
use crate::store::record::import_digest::{Origin, SOTTOVOCE};
use crate::transfer::import::known::Known;
use crate::transfer::import::{ImportReport, ImportedMessage, ImportedMessages};

/// Takes out the copies, which are imported once the originals have their numbers.
pub(super) fn split_off(new: &mut ImportedMessages) -> ImportedMessages {
    let mut copies = ImportedMessages::new(SOTTOVOCE);
    let is_copy = |imported: &mut ImportedMessage| imported.message.restored_from().is_some();
    copies.messages = new.messages.extract_if(.., is_copy).collect();
    copies
}

/// Imports copies, each with the number that its original has here. `originals` are the origins of the export's messages by
/// their numbers there.
pub(super) async fn import(
    mut copies: ImportedMessages,
    originals: &HashMap<u64, Origin>,
    store: &FileConversationStore,
) -> Result<ImportReport> {
    if copies.messages.is_empty() {
        return Ok(ImportReport::default());
    }
    let mut known = Known::default();
    known.catch_up(store).await?;
    for imported in &mut copies.messages {
        let message = &mut imported.message;
        let Some((snapshot, number)) = message.restored_from() else { continue };
        let here = originals.get(&number).and_then(|origin| known.number(*origin));
        let restored_from = here.map(|here| format!("{snapshot}:{here}"));
        match restored_from {
            Some(restored_from) => message.metadata.insert(RESTORED_FROM.to_owned(), restored_from),
            None => message.metadata.remove(RESTORED_FROM),
        };
    }
    copies.import_into(store, |_| {}).await
}
