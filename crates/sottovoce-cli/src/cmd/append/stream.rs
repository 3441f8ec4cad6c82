//! Many messages on their way into a store.

use std::sync::Arc;

use sottovoce::{ChatMessage, ConversationStore, Error, FileConversationStore, StoredMessage};

use super::row::refused;
use crate::exit::Failure;
use crate::output;

/// How many messages share one round of making durable.
const BATCH: usize = 64;
/// How many bytes of words do.
const BATCH_BYTES: usize = 4 << 20;

/// A stream of messages being kept, each with the number of the line it came from.
pub(super) struct Stream<'a> {
    store: &'a FileConversationStore,
    json: bool,
    waiting: Vec<(usize, ChatMessage)>,
    bytes: usize,
    stored: usize,
}

impl<'a> Stream<'a> {
    pub(super) fn new(store: &'a FileConversationStore, json: bool) -> Self {
        Self { store, json, waiting: Vec::new(), bytes: 0, stored: 0 }
    }

    /// How many messages are durable.
    pub(super) fn stored(&self) -> usize {
        self.stored
    }

    pub(super) async fn take(&mut self, line: usize, message: ChatMessage) -> Result<(), Failure> {
        self.bytes += message.content.len();
        self.waiting.push((line, message));
        let full = self.waiting.len() >= BATCH || self.bytes >= BATCH_BYTES;
        if self.json || full { self.flush().await } else { Ok(()) }
    }

    pub(super) async fn flush(&mut self) -> Result<(), Failure> {
        self.bytes = 0;
        let waiting = std::mem::take(&mut self.waiting);
        let messages = waiting.iter().map(|(_, message)| message.clone()).collect();
        match self.store.append_all(messages).await {
            Ok(stored) => self.kept(&stored),
            // One refused message refuses its batch; those before it have done nothing wrong.
            Err(error) if concerns_message(&error) => self.one_by_one(waiting).await,
            Err(error) => {
                if let Error::Partial { stored, .. } = &error {
                    self.stored += stored;
                }
                Err(error.into())
            }
        }
    }

    async fn one_by_one(&mut self, waiting: Vec<(usize, ChatMessage)>) -> Result<(), Failure> {
        for (line, message) in waiting {
            match self.store.append_message(message).await {
                Ok(stored) => self.kept(&[stored])?,
                Err(error) if concerns_message(&error) => {
                    return Err(refused(line, &error.to_string()));
                }
                Err(error) => return Err(error.into()),
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

/// Whether a message was refused for what it is, and the store is well.
fn concerns_message(error: &Error) -> bool {
    matches!(error, Error::TooLarge { .. } | Error::FromTheFuture | Error::InvalidMessage { .. })
}
