//! Includes short artifacts in the prompts of models that cannot open them.

use super::PromptBuilder;
use super::builder::PromptLimits;
use crate::context::ContextMessage;
use crate::error::Error;
use crate::message::{ChatRole, texts};
use crate::store::{artifact_references, blocking};

/// The fraction of a prompt that an artifact may take, and the estimated bytes of a token.
const PART: usize = 8;
const TOKEN: usize = 4;

impl PromptBuilder {
    /// A note that refers to one artifact, together with that artifact's text if it is short. Only the note, the
    /// artifact and the limits decide, so that the note reads the same in every prompt.
    pub(super) async fn with_artifact(
        &self,
        message: &ContextMessage,
        limits: &PromptLimits,
    ) -> Option<ContextMessage> {
        let note = message.stored().filter(|stored| stored.message.role == ChatRole::System)?;
        let mut references = artifact_references(&note.message.content);
        let (Some(id), None) = (references.next(), references.next()) else { return None };
        let share = limits.most(None).map_or(usize::MAX, |tokens| tokens / PART * TOKEN);
        let most = limits.inline.min(share);
        let contents = self.store.artifact_store()?.open_artifact(id).await.ok()??;
        let artifact = contents.artifact();
        if !artifact.is_text() || artifact.size > most as u64 {
            return None;
        }
        let read = blocking(move || {
            contents.lines(1, u64::MAX, most).map_err(|e| Error::io("read it", "artifacts", e))
        });
        let lines = read.await.ok().filter(|lines| !lines.has_more)?;
        let note = &note.message.content;
        Some(message.with_words(&format!(
            "{note}\n{}\n{}",
            texts::ARTIFACT_TEXT,
            lines.text.as_str()
        )))
    }
}
