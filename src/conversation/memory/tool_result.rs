//! Turns long tool results into artifacts, so that prompts do not repeat them.

use std::io::Cursor;

use zeroize::Zeroizing;

use crate::conversation::Conversation;
use crate::error::Result;
use crate::message::{ARTIFACT, ChatMessage, TOOL, texts};
use crate::store::{ArtifactKind, NewArtifact};

/// How much of a long result's beginning stays in its message, in characters.
const BEGINNING: usize = 240;

impl Conversation {
    /// Shortens a tool-result message that is too long: its text becomes an artifact, and the message keeps a line
    /// about it. Forgetting the message deletes the artifact. A store without artifacts keeps the whole message.
    ///
    /// # Errors
    /// Those of [`add_artifact`](crate::store::ArtifactStore::add_artifact).
    pub async fn shortened(&self, message: ChatMessage) -> Result<ChatMessage> {
        let Some(store) = self.store.artifact_store() else { return Ok(message) };
        if self.parts.long_result.is_none_or(|most| message.content.len() <= most) {
            return Ok(message);
        }
        let mut message = self.parts.prompts.masked(message);
        let tool = message.metadata.get(TOOL).map_or("a tool", String::as_str);
        let new = NewArtifact::new(ArtifactKind::ToolResult, tool);
        let content = Zeroizing::new(std::mem::take(&mut message.content).into_bytes());
        let beginning: String = String::from_utf8_lossy(&content).chars().take(BEGINNING).collect();
        let added = store.add_artifact(new, Box::new(Cursor::new(content))).await?;
        let artifact = &added.artifact;
        message.content = texts::long_result(
            &artifact.description(),
            &artifact.reference(),
            &beginning.split_whitespace().collect::<Vec<_>>().join(" "),
        );
        message.metadata.insert(ARTIFACT.to_owned(), artifact.id.clone());
        Ok(message)
    }
}
