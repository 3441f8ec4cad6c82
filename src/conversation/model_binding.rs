//! The conversation's model together with the limits of its answers.

use std::sync::Arc;

use crate::error::{Error, ModelFailure, Result};
use crate::model::{AnswerLimits, LanguageModel, LimitedReply};
use crate::prompt::Prompt;

/// A model and the limits of its answers.
#[derive(Clone)]
pub(super) struct ModelBinding {
    pub(super) model: Arc<dyn LanguageModel>,
    pub(super) limits: AnswerLimits,
}

impl ModelBinding {
    pub(super) fn name(&self) -> &str {
        self.model.name()
    }

    /// Asks the model. The limits apply to the reply.
    pub(super) async fn ask(&self, prompt: &Prompt) -> Result<LimitedReply> {
        let reply = self.model.reply(prompt).await?;
        Ok(LimitedReply::new(reply, self.name(), self.limits))
    }

    pub(super) fn failed(&self, failure: ModelFailure) -> Error {
        Error::Model { server: self.name().to_owned(), failure }
    }
}
