//! Stores a stream of messages in batches.

use std::sync::Arc;

use sottovoce::{ChatMessage, ConversationStore, Error, FileConversationStore, StoredMessage};

use crate::cmd::memory::append::row::refused;
use crate::cmd::memory::append::rows::Rows;
use crate::exit::Failure;
use crate::output;

/// The most messages in one batch: as many as one pack holds.
const BATCH: usize = 32_768;
/// The most bytes of input in one batch.
const BATCH_BYTES: u64 = 16 << 20;

/// A stream of messages being stored, each with its line number.
pub(super) struct Stream<'a> {
    store: &'a FileConversationStore,
    json: bool,
    waiting: Vec<(usize, ChatMessage)>,
    bytes: u64,
    stored: usize,
}

impl<'a> Stream<'a> {
    pub(super) fn new(store: &'a FileConversationStore, json: bool) -> Self {
        Self { store, json, waiting: Vec::new(), bytes: 0, stored: 0 }
    }

    /// The number of durable messages.
    pub(super) fn stored(&self) -> usize {
        self.stored
    }

    /// Whether some messages are not stored yet.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) async fn take(&mut self, mut rows: Rows) -> Result<(), Failure> {
        self.bytes += rows.bytes;
        self.waiting.append(&mut rows.messages);
        let full = self.waiting.len() >= BATCH || self.bytes >= BATCH_BYTES;
        if !self.json && !full {
            return Ok(());
        }
        // Messages beyond this pack start the next one.
        let rest = self.waiting.split_off(self.waiting.len().min(BATCH));
        self.flush().await?;
        self.waiting = rest;
        Ok(())
    }

    pub(super) async fn flush(&mut self) -> Result<(), Failure> {
        self.bytes = 0;
        let mut parts = vec![std::mem::take(&mut self.waiting)];
        while let Some(mut part) = parts.pop() {
            let messages = part.iter().map(|(_, message)| message.clone()).collect();
            match self.store.append_all(messages).await {
                Ok(stored) => self.kept(&stored)?,
                // One refused message refuses its batch. The messages before it are stored again without it.
                Err(error) if concerns_message(&error) => {
                    if let [(line, _)] = part.as_slice() {
                        return Err(refused(*line, &error.to_string()));
                    }
                    let rest = part.split_off(part.len() / 2);
                    parts.extend([rest, part]);
                }
                Err(error) => {
                    if let Error::Partial { stored, .. } = &error {
                        self.stored += stored;
                    }
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    fn kept(&mut self, stored: &[Arc<StoredMessage>]) -> Result<(), Failure> {
        self.stored += stored.len();
        if self.json {
            stored.iter().try_for_each(|stored| output::message(stored, true))?;
        }
        Ok(())
    }
}

/// Whether the error concerns the message itself and not the store.
fn concerns_message(error: &Error) -> bool {
    matches!(error, Error::TooLarge { .. } | Error::FromTheFuture | Error::InvalidMessage { .. })
}
