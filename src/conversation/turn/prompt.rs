//! Builds a turn's prompt within the model's window.

use crate::context::ContextMessage;
use crate::context::tokens::TokenRates;
use crate::conversation::Conversation;
use crate::conversation::memory::tools;
use crate::conversation::turn::state::TurnState;
use crate::error::Result;
use crate::model::ModelLimits;
use crate::prompt::{Prompt, PromptLimits, Receipt, Utterance};

/// The utterance, and what its turn has added since.
type Asked<'a> = (&'a Utterance, &'a [ContextMessage]);

impl Conversation {
    /// Builds a prompt outside of a turn. Reads the learnt rates and learns nothing.
    pub(crate) async fn prompt_within(
        &self,
        model: &str,
        limits: &ModelLimits,
        turn: &Utterance,
    ) -> Result<(Prompt, Receipt)> {
        TurnState::default().prompt(self, model, limits, (turn, &[])).await
    }
}

impl TurnState {
    /// Builds the prompt with the learnt rates that are in use.
    pub(super) async fn prompt(
        &mut self,
        conversation: &Conversation,
        model: &str,
        limits: &ModelLimits,
        asked: Asked<'_>,
    ) -> Result<(Prompt, Receipt)> {
        self.calibrator.read(&*conversation.store).await;
        let built = build(conversation, asked, &self.bounds(conversation, model, limits)).await?;
        if !self.calibrator.starts(model, built.1.start()) {
            return Ok(built);
        }
        let built = build(conversation, asked, &self.bounds(conversation, model, limits)).await?;
        self.calibrator.started(model, built.1.start());
        Ok(built)
    }

    /// Builds the prompt with a smaller budget, after the usual one turned out to be too long.
    pub(super) async fn shorter_prompt(
        &mut self,
        conversation: &Conversation,
        model: &str,
        limits: &ModelLimits,
        budget: usize,
        asked: Asked<'_>,
    ) -> Result<(Prompt, Receipt)> {
        let mut bounds = self.bounds(conversation, model, limits);
        bounds.budget = Some(budget);
        bounds.window = None;
        build(conversation, asked, &bounds).await
    }

    /// The prompt's share of the model's window, and how the model may read what the prompt does not hold.
    fn bounds(
        &mut self,
        conversation: &Conversation,
        model: &str,
        limits: &ModelLimits,
    ) -> PromptLimits {
        let mut bounds = conversation.parts.prompts.limits.clone();
        let learnt = self.calibrator.rates(model);
        if learnt != TokenRates::default() {
            bounds.rates = learnt;
        }
        let windows = bounds.window.into_iter().chain(limits.window.map(|window| window as usize));
        bounds.window = windows.min();
        match conversation.parts.memory {
            Some(memory) if limits.tools && memory.calls > 0 => {
                bounds.tools = tools::definitions();
            }
            Some(memory) => bounds.inline = memory.inline,
            None => {}
        }
        bounds
    }
}

async fn build(
    conversation: &Conversation,
    (turn, since): Asked<'_>,
    bounds: &PromptLimits,
) -> Result<(Prompt, Receipt)> {
    conversation.parts.prompts.build(turn, since, conversation.parts.last_n, bounds).await
}
