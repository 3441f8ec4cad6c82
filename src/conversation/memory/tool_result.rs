//! Results of tools that are too long to be said again in every prompt.

use std::io::Cursor;

use zeroize::Zeroizing;

use crate::conversation::Conversation;
use crate::error::Result;
use crate::message::{ARTIFACT, ChatMessage, TOOL};
use crate::store::{ArtifactKind, NewArtifact};

/// How much of a result's beginning stays in its message, in characters.
const BEGINNING: usize = 240;

impl Conversation {
    /// The message of a tool's result as it is to be kept: where it is too long, its words become an artifact, and a line
    /// about them takes their place. The artifact goes with the message when that is forgotten.
    /// A store without artifacts keeps the whole message.
    ///
    /// # Errors
    /// Those of [`add_artifact`](crate::store::ArtifactStore::add_artifact).
    pub async fn shortened(&self, message: ChatMessage) -> Result<ChatMessage> {
        let Some(store) = self.store.artifact_store() else { return Ok(message) };
        if self.long_result.is_none_or(|most| message.content.len() <= most) {
            return Ok(message);
        }
        let mut message = self.prompts.masked(message);
        let tool = message.metadata.get(TOOL).map_or("a tool", String::as_str);
        let new = NewArtifact::new(ArtifactKind::ToolResult, tool);
        let content = Zeroizing::new(std::mem::take(&mut message.content).into_bytes());
        let beginning: String = String::from_utf8_lossy(&content).chars().take(BEGINNING).collect();
        let added = store.add_artifact(new, Box::new(Cursor::new(content))).await?;
        let artifact = &added.artifact;
        message.content = format!(
            "{} is kept as {}; it begins: {}…",
            artifact.description(),
            artifact.reference(),
            beginning.split_whitespace().collect::<Vec<_>>().join(" "),
        );
        message.metadata.insert(ARTIFACT.to_owned(), artifact.id.clone());
        Ok(message)
    }
}
