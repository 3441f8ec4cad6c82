//! What all connections share: the open conversations and what is spoken without an answer.

use std::sync::Arc;

use sottovoce::config::OpenConversations;

use crate::phrases::Phrases;

/// The agent: its conversations, as configured.
#[derive(Debug)]
pub struct Agent {
    pub(crate) conversations: Arc<OpenConversations>,
    pub(crate) phrases: Phrases,
}

impl Agent {
    /// An agent for these conversations and the configured model.
    pub fn new(conversations: Arc<OpenConversations>, phrases: Phrases) -> Arc<Self> {
        Arc::new(Self { conversations, phrases })
    }
}
