//! One change of a conversation.

use std::ops::RangeInclusive;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::store::record::document::DocumentId;
use crate::store::record::encoding::StoredMessage;
use crate::store::record::seq_set::SeqSet;
use crate::store::record::store_state::StoreState;

/// One change of a conversation: documents, then messages, then deletions. `Debug` shows no words.
#[derive(Clone, Default)]
#[must_use]
pub struct Batch {
    expected: u64,
    documents: Vec<(DocumentId, Option<Zeroizing<Vec<u8>>>)>,
    messages: Vec<Arc<StoredMessage>>,
    deletions: SeqSet,
}

impl Batch {
    /// An empty change of a conversation that is in that state.
    pub fn new(state: &StoreState) -> Self {
        Self { expected: state.revision, ..Self::default() }
    }

    /// Adds a document, which replaces the one before.
    pub fn write(mut self, id: impl Into<DocumentId>, bytes: Zeroizing<Vec<u8>>) -> Self {
        self.documents.push((id.into(), Some(bytes)));
        self
    }

    /// Adds the deletion of a document.
    pub fn remove(mut self, id: impl Into<DocumentId>) -> Self {
        self.documents.push((id.into(), None));
        self
    }

    /// Adds messages. Their numbers follow the state's last number without a gap.
    pub fn append(mut self, messages: impl IntoIterator<Item = Arc<StoredMessage>>) -> Self {
        self.messages.extend(messages);
        self
    }

    /// Adds the deletion of the messages with these numbers, for ever.
    pub(crate) fn delete(mut self, seqs: impl IntoIterator<Item = RangeInclusive<u64>>) -> Self {
        self.deletions.extend(seqs.into_iter());
        self
    }

    /// The revision that the conversation must have for this change to be made.
    pub fn expected_revision(&self) -> u64 {
        self.expected
    }

    /// The documents to write, in order; `None` for one that is deleted.
    pub fn documents(&self) -> impl Iterator<Item = (&DocumentId, Option<&[u8]>)> {
        self.documents.iter().map(|(id, bytes)| (id, bytes.as_ref().map(|bytes| bytes.as_slice())))
    }

    /// The messages to add, with their numbers.
    pub fn messages(&self) -> &[Arc<StoredMessage>] {
        &self.messages
    }

    /// The numbers to delete, sorted. They are recorded as deleted whether or not there is such a message.
    pub fn deletions(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        self.deletions.ranges()
    }

    pub(crate) fn deleted(&self) -> &SeqSet {
        &self.deletions
    }
}

debug_shows!(Batch as it:
    expected, documents = it.documents.iter().map(|(id, _)| id).collect::<Vec<_>>(),
    messages = it.messages.len(), deletions = it.deletions.count()
);
